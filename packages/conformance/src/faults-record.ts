import type { Position } from '@brokerfeed/core';
import { parseToken } from '@brokerfeed/core/wire';

/** An entry as the appender of a fault run writes it: the name of its append, its place in it, and how many there are. */
export interface FaultValue {
  readonly n: number;
  readonly index: number;
  readonly of: number;
}

/** What the snapshot of a fault run is: why it was asked for. */
export interface FaultSnapshot {
  readonly gap: string;
}

/** What a subscriber noticed, in its order. */
export type FaultEvent =
  /** A connection was made, the first or a later one. */
  | { readonly kind: 'connected' }
  /** A control frame: where it stands. */
  | { readonly kind: 'stands'; readonly at: Position }
  /** A control frame between a loss and its snapshot: whoever comes back from there is told `snapshot`. */
  | { readonly kind: 'between' }
  /** An entry. `resume` is the place after its commit for the last one, before it for others. */
  | { readonly kind: 'entry'; readonly value: FaultValue; readonly resume: Position }
  /** Told of a loss by a snapshot, after which it goes on from `at`. */
  | { readonly kind: 'snapshot'; readonly reason: string; readonly at: Position }
  /** Told of a loss by a refusal, after which it starts afresh. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** Told of something that a client should not have seen. */
  | { readonly kind: 'failed'; readonly what: string };

/** The losses of a log: a feed that is refused for one of them is told, for anything else it has failed. */
const LOSSES: ReadonlySet<string> = new Set(['epoch', 'trimmed', 'forked', 'ahead', 'snapshot']);

/** Keeps what one subscriber of a fault run noticed, whatever transport brought it. */
export class FaultRecord {
  readonly name: string;
  #events: FaultEvent[] = [];
  #at: Position | undefined;
  #losses = 0;
  #token: string | undefined;

  constructor(name: string) {
    this.name = name;
  }

  /** Where it stands, by the newest token. */
  get at(): Position | undefined {
    return this.#at;
  }

  /** Losses that it was told of. */
  get losses(): number {
    return this.#losses;
  }

  /** The newest token. */
  get token(): string | undefined {
    return this.#token;
  }

  /** Hands over the events since the last time. */
  take(): readonly FaultEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** A connection was made, or is made anew. */
  connected(): void {
    this.#note({ kind: 'connected' });
  }

  /** A frame came. */
  frame(token: string, value: unknown): void {
    this.#token = token;
    const fields = parseToken(token)?.fields;
    if (fields === undefined) {
      this.failed(`a token that is none: ${token}`);
      return;
    }
    const { epoch, id, ordinal } = fields;
    const at = { epoch, id, ordinal };
    if (fields.kind !== 'snapshot') this.#at = at;
    const given = value as Partial<FaultValue & FaultSnapshot & { feed: string }>;
    if (given.feed !== undefined) {
      this.#note(fields.kind === 'position' ? { kind: 'stands', at } : { kind: 'between' });
    } else if (given.gap !== undefined) {
      this.#note({ kind: 'snapshot', reason: given.gap, at });
    } else if (given.n !== undefined) {
      this.#note({ kind: 'entry', value: value as FaultValue, resume: at });
    } else {
      this.failed(`a value that nobody wrote: ${JSON.stringify(value)}`);
    }
  }

  /** The feed ended with a reason. Answers whether that told of a loss, after which a client starts afresh. */
  ended(reason: string): boolean {
    if (!LOSSES.has(reason)) {
      this.failed(`the feed ended: ${reason}`);
      return false;
    }
    this.#token = undefined;
    this.#note({ kind: 'refused', reason });
    return true;
  }

  /** Something came that a client should not see. */
  failed(what: string): void {
    this.#note({ kind: 'failed', what });
  }

  #note(event: FaultEvent): void {
    if (event.kind === 'snapshot' || event.kind === 'refused') this.#losses += 1;
    this.#events.push(event);
  }
}
