import { checkTopic } from './append-check.ts';
import type { Broker } from './broker.ts';
import type { Clock } from './clock.ts';
import { CLOSED, untilClosed } from './closing.ts';
import { BrokerError } from './errors.ts';
import { integerOption } from './option-check.ts';
import type { WatchClosed, WatchEmpty, WatchItem, WatchTimeout } from './watch-event.ts';
import { resolveWatchOptions, type WatchOptions } from './watch-options.ts';
import type { WatchQueue } from './watch-queue.ts';
import { WatchSources } from './watch-sources.ts';

/**
 * Watches a topic from now on: what is appended to it and what is announced on it, at most once, while somebody looks. For
 * what must not be lost use a feed.
 *
 * When it resolves, every write that will not reach the watch can be read already: so watch first, then scan. After a
 * `lagged`, scan again: only a scan tells what is missing. (`watchThenScan` does both.)
 *
 * A watch never holds up a writer and never makes one fail. Rejects with a `BrokerError`: `UNAVAILABLE` where the log cannot
 * be read, `CLOSED`, `OPTION_INVALID`, `TOPIC_INVALID`, `UNSUPPORTED` for announcements alone of a broker that carries none.
 */
export async function watch(
  broker: Broker,
  topic: string,
  options: WatchOptions = {},
): Promise<Watch> {
  const resolved = resolveWatchOptions(options);
  checkTopic(topic);
  const { signal, clock } = resolved;
  signal?.throwIfAborted();
  const sources = new WatchSources(broker, topic, resolved);
  const close = (): void => sources.queue.end();
  signal?.addEventListener('abort', close);
  sources.closing.whenClosed(() => signal?.removeEventListener('abort', close));
  try {
    if ((await untilClosed(sources.open(), sources.closing)) === CLOSED) {
      signal?.throwIfAborted();
      throw sources.queue.error ?? new BrokerError('CLOSED', 'the broker is closed');
    }
  } catch (error) {
    sources.queue.end();
    throw error;
  }
  return new Watch(topic, sources.queue, clock);
}

/**
 * One watcher's own view of a topic, made by {@link watch}. Entries come in the order of the log, announcements of one
 * instance in the order in which they were made; there is no order between the two, nor between topics.
 */
export class Watch implements AsyncIterable<WatchItem>, AsyncDisposable {
  readonly topic: string;
  readonly #queue: WatchQueue;
  readonly #clock: Clock;

  constructor(topic: string, queue: WatchQueue, clock: Clock) {
    this.topic = topic;
    this.#queue = queue;
    this.#clock = clock;
  }

  /** Takes what comes next, if it is there. */
  tryNext(): WatchItem | WatchClosed | WatchEmpty {
    return this.#queue.take() ?? EMPTY;
  }

  /**
   * Waits for what comes next, in milliseconds where a time is given: 0 looks once. An event that is held outranks a
   * deadline that has passed. Calls that overlap are answered in order.
   */
  next(): Promise<WatchItem | WatchClosed>;
  next(options: { readonly timeoutMs: number }): Promise<WatchItem | WatchClosed | WatchTimeout>;
  async next(options?: {
    readonly timeoutMs: number;
  }): Promise<WatchItem | WatchClosed | WatchTimeout> {
    const timeoutMs =
      options && integerOption('timeoutMs', options.timeoutMs, 0, 0, MAX_TIMEOUT_MS);
    const held = this.#queue.take();
    if (held !== undefined) return held;
    if (timeoutMs === 0) return TIMEOUT;
    return new Promise((resolve) => {
      let cancel: (() => void) | undefined;
      const takeBack = this.#queue.wait((next) => {
        cancel?.();
        resolve(next);
      });
      if (timeoutMs === undefined) return;
      cancel = this.#clock.after(timeoutMs, () => {
        takeBack();
        resolve(TIMEOUT);
      });
    });
  }

  /** Takes no more in. What is held can still be taken; after it comes `closed`. Idempotent. */
  close(): void {
    this.#queue.end();
  }

  /** Iterates until the watch is closed; throws what ended it otherwise. Leaving the loop closes the watch. */
  [Symbol.asyncIterator](): AsyncIterator<WatchItem, undefined, unknown> {
    // By hand: a generator that waits for its next event answers `return()` only after that event.
    return {
      next: async () => {
        const next = await this.next();
        if (next.kind !== 'closed') return { done: false, value: next };
        if (next.error !== undefined) throw next.error;
        return { done: true, value: undefined };
      },
      return: async () => {
        await this[Symbol.asyncDispose]();
        return { done: true, value: undefined };
      },
    };
  }

  /** Closes it and lets go of what it holds. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    this.#queue.clear();
  }
}

const EMPTY: WatchEmpty = Object.freeze({ kind: 'empty' });
const TIMEOUT: WatchTimeout = Object.freeze({ kind: 'timeout' });
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
