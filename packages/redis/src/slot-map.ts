import { SLOTS } from './key-slot.ts';

/** Where a node of a cluster is. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

/** Slots that one primary holds, both ends included. */
export interface SlotRange {
  readonly from: number;
  readonly to: number;
  readonly primary: Address;
}

/** What CLUSTER SLOTS answers: ranges, each with its nodes, the primary first. */
export type SlotsReply = readonly (readonly [
  from: number,
  to: number,
  primary?: readonly [host: string | null, port: number, ...rest: readonly unknown[]],
  ...replicas: readonly unknown[],
])[];

/** Reads the reply of CLUSTER SLOTS that `asked` gave, without the slots of a primary whose name it does not know yet. */
export function readSlots(reply: SlotsReply, asked: Address): SlotRange[] {
  const ranges: SlotRange[] = [];
  for (const [from, to, primary] of reply) {
    if (primary === undefined) continue;
    const [name, port] = primary;
    const host = hostOf(name, asked);
    if (host !== undefined) ranges.push({ from, to, primary: { host, port } });
  }
  return ranges;
}

/** Where an error sends whoever sent the command: for good, or this once. */
export interface Redirection {
  readonly kind: 'MOVED' | 'ASK';
  readonly slot: number;
  readonly address: Address;
}

/** Reads a redirection that `asked` answered; undefined where the text is none. */
export function readRedirection(message: string, asked: Address): Redirection | undefined {
  const [, kind, slot, name = '', port] = /^(MOVED|ASK) (\d+) (.*):(\d+)$/.exec(message) ?? [];
  const host = hostOf(name, asked);
  if (kind !== 'MOVED' && kind !== 'ASK') return undefined;
  if (host === undefined || !(Number(slot) < SLOTS)) return undefined;
  return { kind, slot: Number(slot), address: { host, port: Number(port) } };
}

/** A cluster may leave out the name: its nodes are then where whoever asks has asked. */
function hostOf(name: string | null, asked: Address): string | undefined {
  if (name === '?') return undefined;
  return name === null || name === '' ? asked.host : name;
}
