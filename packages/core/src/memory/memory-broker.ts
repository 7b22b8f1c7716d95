import { checkAppend, checkRetention, checkTopic } from '../append-check.ts';
import type { AppendOptions, Bounds, Loss, Page, Retention, Sink, Start } from '../broker.ts';
import { type Clock, systemClock } from '../clock.ts';
import { BrokerError } from '../errors.ts';
import { LocalAnnouncer } from '../local-announcer.ts';
import { type Logger, type Meter, type Observer, resolveObserver } from '../observer.ts';
import { integerOption, refuseOption } from '../option-check.ts';
import type { Position } from '../position.ts';
import {
  type AppendedAll,
  type CommitBroker,
  type CommitLog,
  checkAppendAll,
  type TopicAppend,
} from '../topic-commit.ts';
import { MemoryStore, memoryStore } from './memory-store.ts';
import type { AppendPolicy } from './topic-log.ts';

/** The options of {@link memoryBroker}. */
export interface MemoryBrokerOptions {
  /**
   * The topics. Brokers on one store are instances of one service: each reads what the others append.
   * @default a store of its own
   */
  readonly store?: MemoryStore;
  /**
   * What an append through this broker leaves of its topic, exactly, unless the append says so itself.
   * @default { maxEntries: 10_000 }
   */
  readonly retention?: Retention;
  /**
   * How long an idempotency key is remembered, in milliseconds.
   * @default 86_400_000 // 24 hours
   */
  readonly idempotencyWindowMs?: number;
  /**
   * The largest entry, in UTF-8 bytes of its value.
   * @default unlimited
   */
  readonly maxEntryBytes?: number;
  /** @default silence */
  readonly logger?: Logger;
  /** @default counts nothing */
  readonly meter?: Meter;
  /** @default the system's */
  readonly clock?: Clock;
}

const DEFAULT_MAX_ENTRIES = 10_000;
const DEFAULT_IDEMPOTENCY_WINDOW_MS = 24 * 60 * 60 * 1000;
const UNLIMITED = Number.POSITIVE_INFINITY;
/** Commits that a live read hands over at a time while it catches up. */
const FOLLOW_COMMITS = 256;

/**
 * Makes a broker that keeps its topics in this process: for tests, for development, and for services that may forget.
 * It is also the reference of the seam, and as strict as a remote broker: readers are never called from inside an append.
 * Throws `OPTION_INVALID`.
 */
export function memoryBroker(options: MemoryBrokerOptions = {}): CommitBroker {
  const resolved = resolveOptions(options);
  const log = new MemoryLog(resolved);
  const announcer = new LocalAnnouncer(resolved.store.audience);
  const close = (): Promise<void> => announcer.close(log.close());
  return { name: 'memory', log, announcer, close, [Symbol.asyncDispose]: close };
}

class MemoryLog implements CommitLog {
  readonly observer: Observer;
  readonly #options: ResolvedOptions;
  readonly #store: MemoryStore;
  /** Live reads that wait for a change. */
  readonly #waiting = new Set<() => void>();
  readonly #reads = new Set<Promise<unknown>>();
  #state: 'open' | 'closed' = 'open';

  constructor(options: ResolvedOptions) {
    this.observer = options.observer;
    this.#options = options;
    this.#store = options.store;
  }

  async append(
    topic: string,
    value: string | readonly string[],
    options?: AppendOptions,
  ): Promise<Position> {
    this.#checkOpen();
    const write = checkAppend(topic, value, options, this.#options.maxEntryBytes);
    return this.#store.append(topic, write, this.#options, this.#options.clock.now());
  }

  async appendAll(
    appends: readonly TopicAppend[],
    options: { readonly idempotencyKey?: string } = {},
  ): Promise<AppendedAll> {
    this.#checkOpen();
    const writes = checkAppendAll(appends, options, this.#options.maxEntryBytes);
    const now = this.#options.clock.now();
    const positions = this.#store.appendAll(writes, options.idempotencyKey, this.#options, now);
    return { positions };
  }

  async page(topic: string, from: Start, limit: number, signal?: AbortSignal): Promise<Page> {
    this.#checkOpen();
    checkTopic(topic);
    signal?.throwIfAborted();
    return this.#store.page(topic, from, limit);
  }

  follow(
    topic: string,
    from: Position,
    sink: Sink,
    signal: AbortSignal,
  ): Promise<Loss | undefined> {
    const reading = this.#read(topic, from, sink, signal);
    this.#reads.add(reading);
    const done = (): void => void this.#reads.delete(reading);
    reading.then(done, done);
    return reading;
  }

  async bounds(topic: string): Promise<Bounds> {
    this.#checkOpen();
    checkTopic(topic);
    return this.#store.bounds(topic);
  }

  /** Ends every read of this broker, after what was appended before. The store, and other brokers on it, live on. */
  async close(): Promise<void> {
    this.#state = 'closed';
    for (const wake of [...this.#waiting]) wake();
    await Promise.allSettled(this.#reads);
  }

  #checkOpen(): void {
    if (this.#state === 'closed') throw new BrokerError('CLOSED', 'the memory broker is closed');
  }

  async #read(
    topic: string,
    from: Position,
    sink: Sink,
    signal: AbortSignal,
  ): Promise<Loss | undefined> {
    // Awaited, although nothing is waited for: a sink is never called from inside the call that gave it.
    const { verdict } = await this.page(topic, from, 0);
    if (signal.aborted) return undefined;
    if (verdict !== 'ok') return verdict;
    sink.live();
    let position = from;
    while (!signal.aborted) {
      const page = this.#store.page(topic, position, FOLLOW_COMMITS);
      if (page.verdict !== 'ok') return page.verdict;
      const last = page.commits.at(-1);
      // Waits, or ends, only after an empty page: a sink may itself have appended to the topic, after the page was read.
      if (last === undefined) {
        this.#checkOpen();
        await this.#changed(topic, signal);
      } else {
        position = last.position;
        sink.commits(page.commits);
      }
    }
    return undefined;
  }

  /** Resolves at the next change of the topic, at the abort, or when the broker closes. */
  #changed(topic: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        unwatch();
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const unwatch = this.#store.watch(topic, wake);
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}

interface ResolvedOptions extends AppendPolicy {
  readonly store: MemoryStore;
  readonly maxEntryBytes: number;
  readonly observer: Observer;
  readonly clock: Clock;
}

function resolveOptions(options: MemoryBrokerOptions): ResolvedOptions {
  const { store = memoryStore() } = options;
  if (!(store instanceof MemoryStore)) refuseOption('store', 'what memoryStore() makes', store);
  const retention = checkRetention(options.retention);
  return {
    store,
    maxEntries: retention?.maxEntries ?? DEFAULT_MAX_ENTRIES,
    maxAgeMs: retention?.maxAgeMs ?? UNLIMITED,
    idempotencyWindowMs: integerOption(
      'idempotencyWindowMs',
      options.idempotencyWindowMs,
      DEFAULT_IDEMPOTENCY_WINDOW_MS,
      1,
    ),
    maxEntryBytes: integerOption('maxEntryBytes', options.maxEntryBytes, UNLIMITED, 1),
    observer: resolveObserver(options),
    clock: options.clock ?? systemClock,
  };
}
