import { type BrokerError, isBrokerError } from './errors.ts';
import type { WatchClosed, WatchEvent, WatchItem } from './watch-event.ts';
import { WatchRing } from './watch-ring.ts';

type Waiter = (next: WatchItem | WatchClosed) => void;

const CLOSED: WatchClosed = Object.freeze({ kind: 'closed' });

/**
 * Between those who write and one who watches: filled without ever waiting, emptied in order. What comes first is decided
 * by place alone, so that an event which is held outranks a close or a deadline that came after it.
 */
export class WatchQueue {
  readonly #ring: WatchRing;
  readonly #onEnd: () => void;
  readonly #onLag: (missed: number | undefined) => void;
  /** Whoever waits, first come first. While anybody does, nothing is held. */
  readonly #waiters = new Set<Waiter>();
  #closed: WatchClosed | undefined;

  /** `onLag` is called when a loss is taken, `onEnd` once, when nothing more can come. */
  constructor(capacity: number, onLag: (missed: number | undefined) => void, onEnd: () => void) {
    this.#ring = new WatchRing(capacity);
    this.#onLag = onLag;
    this.#onEnd = onEnd;
  }

  /** What ended it, where that was an error. */
  get error(): BrokerError | undefined {
    return this.#closed?.error;
  }

  push(event: WatchEvent): void {
    if (this.#closed !== undefined) return;
    const [waiter] = this.#waiters;
    if (waiter === undefined) this.#ring.push(event);
    else this.#hand(waiter, event);
  }

  /** Puts in the news of a loss; undefined where its size is unknown. */
  lag(missed: number | undefined): void {
    if (this.#closed !== undefined) return;
    this.#ring.lag(missed);
    const [waiter] = this.#waiters;
    if (waiter !== undefined) this.#hand(waiter, this.take() as WatchItem);
  }

  /** Ends it after what is held. That its broker or the watch was closed is no error. Idempotent. */
  end(error?: BrokerError): void {
    if (this.#closed !== undefined) return;
    this.#closed =
      error === undefined || isBrokerError(error, 'CLOSED') ? CLOSED : { kind: 'closed', error };
    for (const waiter of [...this.#waiters]) this.#hand(waiter, this.#closed);
    this.#onEnd();
  }

  /** Takes what comes next, or undefined where nothing is held yet. */
  take(): WatchItem | WatchClosed | undefined {
    const item = this.#ring.shift() ?? this.#closed;
    if (item?.kind === 'lagged') this.#onLag(item.missed);
    return item;
  }

  /** Hands over what comes next, where {@link take} had nothing. Returns what takes the wish back. */
  wait(waiter: Waiter): () => void {
    this.#waiters.add(waiter);
    return () => this.#waiters.delete(waiter);
  }

  /** Lets go of what is held. */
  clear(): void {
    this.#ring.clear();
  }

  #hand(waiter: Waiter, next: WatchItem | WatchClosed): void {
    this.#waiters.delete(waiter);
    waiter(next);
  }
}
