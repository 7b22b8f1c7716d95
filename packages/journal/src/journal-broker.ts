import { setMaxListeners } from 'node:events';
import {
  type AppendedAll,
  type AppendOptions,
  type Bounds,
  BrokerError,
  type CommitBroker,
  type CommitLog,
  checkAppend,
  checkAppendAll,
  checkTopic,
  LocalAnnouncer,
  type Loss,
  type Observer,
  type Page,
  type Position,
  type Sink,
  type Start,
  type TopicAppend,
} from '@brokerfeed/core';
import type { Appended } from './append-job.ts';
import { Journal } from './journal.ts';
import {
  type JournalOptions,
  type ResolvedJournalOptions,
  resolveJournalOptions,
} from './options.ts';

/** What {@link JournalLog.appendAll} wrote. */
export interface JournalAppendedAll extends AppendedAll {
  /** The place in the journal of the one record that holds all of it. */
  readonly sequence: number;
}

/** The seam's log, and what one journal for all topics can do besides. */
export interface JournalLog extends CommitLog {
  /** Appends one commit to each topic, all or nothing, in one record. */
  appendAll(
    appends: readonly TopicAppend[],
    options?: { readonly idempotencyKey?: string },
  ): Promise<JournalAppendedAll>;
  /** Removes all but the newest commits of a topic, durably. Their bytes go with segments of which nothing is left. */
  trim(topic: string, keepCommits: number): Promise<void>;
  /** Deletes a topic, durably. What is read from it or written to it next belongs to a new incarnation. */
  drop(topic: string): Promise<void>;
}

/** A broker on an open folder. */
export interface JournalBroker extends CommitBroker {
  readonly log: JournalLog;
}

/**
 * Opens a journal: durable topics in a folder, without a server. Takes the folder's lock and recovers before it returns.
 * Throws a `BrokerError`: `UNAVAILABLE` where another process has the folder, `DAMAGED` where it holds bytes that no append
 * wrote, `UNSUPPORTED` where a later version wrote it, `OPTION_INVALID`.
 */
export function journalBroker(options: JournalOptions): JournalBroker {
  const resolved = resolveJournalOptions(options);
  const journal = new Journal(resolved);
  return brokerOn(journal, resolved, () => journal.close());
}

/** Makes an instance on an open journal. `release` is called when it has closed. */
export function brokerOn(
  journal: Journal,
  options: ResolvedJournalOptions,
  release: () => Promise<void>,
): JournalBroker {
  const log = new Log(journal, options);
  const announcer = new LocalAnnouncer(journal.audience);
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= announcer.close(log.close()).then(release);
    return closed;
  };
  return { name: 'journal', log, announcer, close, [Symbol.asyncDispose]: close };
}

class Log implements JournalLog {
  readonly observer: Observer;
  readonly #journal: Journal;
  readonly #maxEntryBytes: number;
  /** Ends the reads. */
  readonly #closing = new AbortController();
  #state: 'open' | 'closed' = 'open';

  constructor(journal: Journal, options: ResolvedJournalOptions) {
    this.observer = options.observer;
    this.#journal = journal;
    this.#maxEntryBytes = options.maxEntryBytes;
    // One listener for each live read: that many are no leak.
    setMaxListeners(0, this.#closing.signal);
  }

  append(
    topic: string,
    value: string | readonly string[],
    options?: AppendOptions,
  ): Promise<Position> {
    // One promise and no `await`: they would be a tenth of what an append costs. What throws in here rejects.
    return new Promise((resolve, reject) => {
      this.#checkOpen();
      const checked = checkAppend(topic, value, options, this.#maxEntryBytes);
      const { entries, headers, retention, idempotencyKey } = checked;
      this.#journal.append(
        [{ topic, entries, headers, retention }],
        idempotencyKey,
        false,
        ({ positions }) => resolve(positions[0] as Position),
        reject,
      );
    });
  }

  appendAll(
    appends: readonly TopicAppend[],
    options: { readonly idempotencyKey?: string } = {},
  ): Promise<Appended> {
    return new Promise((resolve, reject) => {
      this.#checkOpen();
      const writes = checkAppendAll(appends, options, this.#maxEntryBytes);
      this.#journal.append(writes, options.idempotencyKey, true, resolve, reject);
    });
  }

  async page(topic: string, from: Start, limit: number, signal?: AbortSignal): Promise<Page> {
    this.#checkOpen();
    checkTopic(topic);
    signal?.throwIfAborted();
    return this.#journal.page(topic, from, limit);
  }

  async follow(
    topic: string,
    from: Position,
    sink: Sink,
    signal: AbortSignal,
  ): Promise<Loss | undefined> {
    this.#checkOpen();
    checkTopic(topic);
    const loss = await this.#journal.follow(topic, from, sink, signal, this.#closing.signal);
    if (!signal.aborted) this.#checkOpen();
    return loss;
  }

  async bounds(topic: string): Promise<Bounds> {
    this.#checkOpen();
    checkTopic(topic);
    return this.#journal.bounds(topic);
  }

  async trim(topic: string, keepCommits: number): Promise<void> {
    this.#checkOpen();
    checkTopic(topic);
    await this.#journal.trim(topic, keepCommits);
  }

  async drop(topic: string): Promise<void> {
    this.#checkOpen();
    checkTopic(topic);
    await this.#journal.drop(topic);
  }

  /** Waits for the writes under way, which readers at the tip are still given, and ends every read. */
  async close(): Promise<void> {
    this.#state = 'closed';
    await this.#journal.settled();
    this.#closing.abort();
  }

  #checkOpen(): void {
    if (this.#state === 'closed') throw new BrokerError('CLOSED', 'the journal is closed');
  }
}
