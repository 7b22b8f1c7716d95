import type { Announcer } from './announcer.ts';
import type { Observer } from './observer.ts';
import type { Position } from './position.ts';

/*
 * The seam. A broker implements what is on this page and nothing else; tails, catch-up, gaps, snapshots, tokens and
 * counters live once, above it. `@brokerfeed/conformance` holds the laws below as tests.
 *
 * A topic is one ordered log. One append writes one commit: one or more entries, seen whole or not at all. Commits of
 * one incarnation of a topic are counted from 1 without holes; that count is the commit's ordinal, and it is the same
 * for whoever reads it, on every instance, for ever.
 */

/** String headers of an entry. A frozen bag without prototype: `__proto__` is an ordinary name. */
export type Headers = Readonly<Record<string, string>>;

/** One value of a commit. Its address is (generation, index): the commit's ordinal, its place in the commit from 0. */
export interface Entry {
  readonly value: string;
  readonly headers: Headers;
  /** Why nobody can be given it, where that is so; value and headers are empty then. Its address stays its own. */
  readonly unreadable?: Error | undefined;
}

/** What one append wrote. */
export interface Commit {
  /**
   * Where a reader is before this commit: its ordinal is one less than `position.ordinal`. The same for every reader, also
   * after the commit before it was trimmed, since tokens name it.
   */
  readonly previous: Position;
  /** Where a reader is after this commit; what `append` resolved with. */
  readonly position: Position;
  /** At least one, in the order of the append. */
  readonly entries: readonly Entry[];
}

/** The positions from which a topic can be read now, both ends included. */
export interface Bounds {
  /** The place before the oldest retained commit. Equals `last` where none is retained. */
  readonly first: Position;
  /** The place after the newest commit. */
  readonly last: Position;
}

/**
 * Why a position cannot be read from.
 *
 * - `epoch`: it names another incarnation of the topic.
 * - `trimmed`: a commit after it is gone. The position just after the last removed commit has lost nothing and is fine.
 * - `ahead`: it lies past the end.
 * - `forked`: it lies inside the bounds, but the log holds another commit there.
 *
 * Where several are true, the first of them is the answer.
 */
export type Loss = 'epoch' | 'trimmed' | 'ahead' | 'forked';

/** The answer to a read: commits that follow the position without a hole, or why there are none to be had. */
export type Page =
  | {
      readonly verdict: 'ok';
      /** The position read from: the one given, or what `'earliest'` or `'latest'` meant at that moment. */
      readonly from: Position;
      /** In order; the first one's `previous` is `from`. */
      readonly commits: readonly Commit[];
      /** Whether the log held nothing after these commits at the moment of the read. */
      readonly atTip: boolean;
      readonly bounds: Bounds;
    }
  | { readonly verdict: Loss; readonly bounds: Bounds };

/** Where a read starts. */
export type Start = Position | 'earliest' | 'latest';

/** Receives a live read. Its methods never throw and never wait. */
export interface Sink {
  /** The position was checked and the live read stands. Called once, before any commit. */
  live(): void;
  /** The next commits, in order and without a hole: the first one's `previous` is where the read stood. */
  commits(commits: readonly Commit[]): void;
}

/** Which commits of a topic stay. The others go with an append: whole, oldest first. The newest always stays. */
export interface Retention {
  /**
   * The newest entries that stay: at least so many, since commits go whole. A store that counts commits keeps so many of
   * those.
   */
  readonly maxEntries?: number;
  /** How old a commit may be, in milliseconds. A topic that nobody appends to keeps what it has. */
  readonly maxAgeMs?: number;
}

/** What may be said of an append. */
export interface AppendOptions {
  /** Given to every entry of the commit. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * What this append leaves of its topic, and of no other: a bound that is given takes the place of the broker's own. Never
   * less stays; how much more may, the broker's options say. Whoever was still to read what goes is told `trimmed`. A
   * repeat under an idempotency key removes nothing.
   *
   * A store that keeps all topics in one place, such as a journal, has its own retention beside it: what either lets go is
   * gone.
   * @default the broker's own
   */
  readonly retention?: Retention;
  /**
   * Makes a repeated append harmless: within the broker's window (see its options) an append to the same topic with the
   * same key and the same values writes nothing and resolves with the first one's position. With other values it
   * rejects with `IDEMPOTENCY_CONFLICT`.
   */
  readonly idempotencyKey?: string;
}

/**
 * The log half of a broker. Every method rejects with a `BrokerError`: `CLOSED` after `close()`, `UNAVAILABLE` where the
 * store cannot be reached, `TOPIC_INVALID` for a name that {@link checkTopic} refuses.
 */
export interface BrokerLog {
  /** Where the broker, and whatever stands on it, logs and counts. */
  readonly observer: Observer;

  /**
   * Appends one commit, all entries or none, and resolves with the position after it once it is as durable as the
   * broker promises. Readers may see it before or after that promise resolves, but never before it is durable.
   * Rejects with `VALUE_INVALID`, `HEADERS_INVALID`, `OPTION_INVALID`, `ENTRY_TOO_LARGE` or `IDEMPOTENCY_CONFLICT`, having
   * written nothing.
   */
  append(
    topic: string,
    value: string | readonly string[],
    options?: AppendOptions,
  ): Promise<Position>;

  /**
   * Reads what follows a position. Epoch, bounds, verdict and commits are decided in one atomic step: no trim, append or
   * delete can come between them. At most `limit` commits (0 reads none, and is a check alone); a broker may return
   * fewer to bound memory, but at least one where `limit` allows and the log holds one. Commits are never cut.
   *
   * A topic never written to, or deleted, gets its epoch by being read: a position exists before the first commit.
   *
   * Rejects with the signal's reason once `signal` aborts.
   */
  page(topic: string, from: Start, limit: number, signal?: AbortSignal): Promise<Page>;

  /**
   * Reads live: hands every commit after `from` to the sink, those already in the log first, until `signal` aborts.
   * Resolves with `undefined` on abort, or with the loss that ended it: whatever removes, replaces or rolls back a commit
   * that this read was still to deliver must be found, also while the topic is quiet, and is never skipped. Rejects when
   * the read broke; the caller then starts a fresh one from the last commit it got.
   */
  follow(topic: string, from: Position, sink: Sink, signal: AbortSignal): Promise<Loss | undefined>;

  /** Reads the bounds of a topic. */
  bounds(topic: string): Promise<Bounds>;
}

/** A store of topics, shared by every instance that opens it. */
export interface Broker extends AsyncDisposable {
  /** Names the kind in logs and metrics, such as `redis`. */
  readonly name: string;
  readonly log: BrokerLog;
  /** Carries values that are not stored; undefined where the broker cannot. */
  readonly announcer?: Announcer;
  /** Ends every read with `CLOSED`, waits for appends under way, releases what the broker opened. Idempotent. */
  close(): Promise<void>;
}
