import type { Instance } from './cluster.ts';
import type { SmokeClient } from './smoke-client.ts';

/** What a run left to judge. */
export interface SmokeRun {
  /** The ids of all orders, in their order. */
  readonly placed: readonly string[];
  readonly clients: readonly SmokeClient[];
  readonly cluster: { readonly instances: readonly Instance[] };
  readonly killed: number;
}

export interface SmokeReport {
  readonly line: string;
  readonly passed: boolean;
}

/** Judges a run on a log that outlived the kill: every client has every order, once and in the same order. */
export function reportOnLog(run: SmokeRun): SmokeReport {
  const missed = total(run, (client) => missing(run, client.received));
  const repeated = total(run, ({ received }) => received.length - new Set(received).size);
  const entries = run.clients.map(
    ({ transport, received }) => `${transport} ${received.length} entries`,
  );
  const orders = new Set(run.clients.map(({ received }) => String(received)));
  const snapshots = total(run, (client) => client.snapshots.length);
  const trouble = [
    ...(snapshots > 0 ? [`snapshots ${snapshots}`] : []),
    ...(missed + repeated === 0 && orders.size > 1 ? ['out of order'] : []),
  ];
  const numbers = [...trouble, `missed ${missed}`, `repeated ${repeated}`].join(', ');
  return {
    line: `${numbers} (${[...entries, ...servers(run)].join(', ')})`,
    passed: trouble.length === 0 && missed + repeated === 0 && run.killed > 0,
  };
}

/** Judges a run on a log that was lost: every client was told so by a snapshot, and has every order from there or live. */
export function reportOnSnapshots(run: SmokeRun): SmokeReport {
  const has = (client: SmokeClient): string[] => [...client.snapshots.flat(), ...client.received];
  const missed = total(run, (client) => missing(run, has(client)));
  const snapshots = total(run, (client) => client.snapshots.length);
  const orders = run.clients.map(
    (client) => `${client.transport} ${new Set(has(client)).size} orders`,
  );
  return {
    line: `missed ${missed}, snapshots ${snapshots} (${[...orders, ...servers(run)].join(', ')})`,
    passed: missed === 0 && run.clients.every((client) => client.snapshots.length === run.killed),
  };
}

function missing(run: SmokeRun, got: readonly string[]): number {
  const ids = new Set(got);
  return run.placed.filter((id) => !ids.has(id)).length;
}

function total(run: SmokeRun, count: (client: SmokeClient) => number): number {
  return run.clients.reduce((sum, client) => sum + count(client), 0);
}

function servers(run: SmokeRun): string[] {
  const { length } = run.cluster.instances;
  return [`${length} ${length === 1 ? 'instance' : 'instances'}`, `${run.killed} killed`];
}
