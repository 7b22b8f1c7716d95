import type { WatchReader } from '@brokerfeed/core';
import { toFeedError } from './feed-error.ts';
import { type PushOffer, takeOffer, untilWritable } from './push-offer.ts';
import { turnstile } from './turnstile.ts';

const DONE = { done: true, value: undefined } as const;

/**
 * The one iteration of a watch, as tRPC takes it. While its connection is known and full, nothing is taken from the watch:
 * its ring drops the oldest, and the client is told. Without that, whatever a client does not read would be held for it.
 */
export class WatchIterator<T>
  implements AsyncIterator<T, undefined, unknown>, AsyncIterable<T, undefined, unknown>
{
  readonly #reader: WatchReader;
  readonly #signal: AbortSignal;
  #connection: PushOffer | undefined;
  #iterated = false;
  #ended = false;

  constructor(reader: WatchReader, signal: AbortSignal) {
    this.#reader = reader;
    this.#signal = signal;
  }

  /** Starts the iteration. A second call throws: two loops would each miss what the other got. */
  [Symbol.asyncIterator](): this {
    if (this.#iterated) throw new TypeError('a watch is iterated once: call the procedure again');
    this.#iterated = true;
    this.#connection = takeOffer();
    return this;
  }

  /** Waits for the next value. Calls that overlap are answered in order. */
  async next(): Promise<IteratorResult<T, undefined>> {
    if (this.#connection?.isFull()) await untilWritable(this.#connection, this.#signal);
    try {
      const next = this.#ended ? undefined : await this.#reader.next();
      const turn = next === undefined ? undefined : turnstile.pass();
      if (turn !== undefined) await turn;
      // A value that came in the turn of `return()` is not the consumer's any more.
      if (next === undefined || this.#ended) return this.#done();
      // The engine passes on what the typed callbacks answered.
      return { done: false, value: next.value as T };
    } catch (error) {
      this.#done();
      throw toFeedError(error);
    }
  }

  /** Ends the watch. Never rejects: tRPC would report the unsubscribe as a failure. */
  return(): Promise<IteratorResult<T, undefined>> {
    return Promise.resolve(this.#done());
  }

  /** Ends the watch and rejects with the error given, as a generator does that catches nothing. */
  throw(error?: unknown): Promise<IteratorResult<T, undefined>> {
    this.#done();
    return Promise.reject(error);
  }

  /** Ends the watch: tRPC's loop leaves by it. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#done();
  }

  #done(): typeof DONE {
    this.#ended = true;
    this.#reader.close();
    return DONE;
  }
}
