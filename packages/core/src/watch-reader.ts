import { CLOSED, Closing, untilClosed } from './closing.ts';
import { FeedRefusal, toRefusal } from './feed-refusal.ts';
import { isPromise, type MaybePromise } from './maybe-promise.ts';
import type { Watch } from './watch.ts';
import type { WatchEvent } from './watch-event.ts';
import type { FeedLag } from './wire/lag.ts';

/** The answer for an event that this subscriber does not get. */
export const LEFT_OUT: unique symbol = Symbol('left out');

/** Hands the values of one watch to its carrier. */
export class WatchReader {
  readonly #watch: Watch;
  readonly #makeValue: (event: WatchEvent) => MaybePromise<unknown>;
  readonly #closing = new Closing();
  #last: Promise<unknown> = Promise.resolve();
  #begun = false;

  /** `onClose` is called once. */
  constructor(
    watch: Watch,
    makeValue: (event: WatchEvent) => MaybePromise<unknown>,
    onClose: () => void,
  ) {
    this.#watch = watch;
    this.#makeValue = makeValue;
    this.#closing.whenClosed(onClose);
  }

  /**
   * Resolves with the next value, or the frame that stands where some are missing; undefined once it was closed. Rejects
   * with a `FeedRefusal` when the watch ended by itself, and is closed then. Calls that overlap are answered in order.
   */
  next(): Promise<{ readonly value: unknown } | undefined> {
    const value = this.#last.then(() => this.#pull());
    this.#last = value.then(ignore, ignore);
    return value;
  }

  /** Ends the watch and settles a pending {@link next} with undefined. Idempotent. */
  close(): void {
    this.#closing.close();
    this.#watch.close();
  }

  async #pull(): Promise<{ readonly value: unknown } | undefined> {
    if (!this.#begun && !this.#closing.closed) {
      this.#begun = true;
      // All that came before is missing: a client that reads the state at each lag starts by it, and starts again by it.
      return { value: lagOf(undefined) };
    }
    while (!this.#closing.closed) {
      const item = await this.#watch.next();
      if (this.#closing.closed) return undefined;
      switch (item.kind) {
        case 'closed':
          this.close();
          throw item.error === undefined ? new FeedRefusal('closing') : toRefusal(item.error);
        case 'lagged':
          return { value: lagOf(item.missed) };
        case 'entry':
        case 'announcement': {
          const value = this.#makeValue(item);
          const ready = isPromise(value) ? await untilClosed(value, this.#closing) : value;
          if (ready !== LEFT_OUT && ready !== CLOSED) return { value: ready };
          break;
        }
        default:
          item satisfies never;
      }
    }
    return undefined;
  }
}

function lagOf(missed: number | undefined): FeedLag {
  return missed === undefined ? { feed: 'lagged' } : { feed: 'lagged', missed };
}

function ignore(): void {}
