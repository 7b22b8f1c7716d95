import type { FeedReader } from '@brokerfeed/core';
import { isTrackedEnvelope, type TrackedEnvelope, tracked } from '@trpc/server';
import { toFeedError } from './feed-error.ts';
import { type PushOffer, type Serializer, takeOffer } from './push-offer.ts';

/** What one call of an iterator's method resolves with. */
export type FeedResult<T> = IteratorResult<TrackedEnvelope<T>, undefined>;

/** What a feed must know of its call to be pushed rather than pulled. */
export interface PushTerms {
  readonly signal: AbortSignal;
  readonly serializer: Serializer;
}

/** Whether values are pulled, may be pushed, or are pushed. */
type Mode =
  | { readonly mode: 'pull'; readonly connection: PushOffer | undefined }
  /** Taken in the turn in which a connection said `started`; not yet by whom. */
  | { readonly mode: 'offered'; readonly connection: PushOffer; readonly terms: PushTerms }
  | { readonly mode: 'push'; readonly connection: PushOffer; readonly terms: PushTerms };

/**
 * The one iteration of a feed, as tRPC takes it. Written by hand because a generator that waits for its next entry
 * answers `return()` only after that entry: an unsubscribed feed would stay.
 *
 * Whatever ends it first (the signal, `return()`, `throw()`, its own end) closes the reader, which settles a pending
 * `next()`.
 */
export class FeedIterator<T>
  implements
    AsyncIterator<TrackedEnvelope<T>, undefined, unknown>,
    AsyncIterable<TrackedEnvelope<T>, undefined, unknown>
{
  readonly #reader: Pick<FeedReader, 'next' | 'push' | 'close'>;
  readonly #terms: PushTerms | undefined;
  #mode: Mode = { mode: 'pull', connection: undefined };
  #iterated = false;
  #ended = false;

  /** Without `terms` the feed is always pulled. */
  constructor(reader: Pick<FeedReader, 'next' | 'push' | 'close'>, terms?: PushTerms) {
    this.#reader = reader;
    this.#terms = terms;
  }

  /** Starts the iteration. A second call throws: two loops would each miss what the other got. */
  [Symbol.asyncIterator](): this {
    if (this.#iterated) throw new TypeError('a feed is iterated once: call the procedure again');
    this.#iterated = true;
    const connection = takeOffer();
    const terms = this.#terms;
    // tRPC's loop sets `onabort` before its first `next()`, and a wrapper iterates us in its own first `next()`: so a
    // handler that is there already tells that somebody stands between, whose values must not be bypassed.
    if (connection !== undefined && terms?.signal.onabort === null) {
      this.#mode = { mode: 'offered', connection, terms };
    } else {
      this.#mode = { mode: 'pull', connection };
    }
    return this;
  }

  /**
   * Ends the feed. That it is read tells more: tRPC's own loop reads it before the first `next()`, `for await` and
   * `yield*` never do. So nothing stands between us and the connection.
   */
  get [Symbol.asyncDispose](): () => Promise<void> {
    if (this.#mode.mode === 'offered') this.#mode = { ...this.#mode, mode: 'push' };
    return async () => this.#end();
  }

  /** Waits for the next frame. Calls that overlap are answered in order. Stays pending while frames are pushed. */
  async next(): Promise<FeedResult<T>> {
    const mode = this.#mode;
    try {
      if (mode.mode === 'push') {
        await mode.connection.push(this.#reader, mode.terms.serializer);
        return { done: true, value: undefined };
      }
      const full = mode.connection?.whenWritable();
      if (full !== undefined) await full;
      const frame = this.#ended ? undefined : await this.#reader.next();
      // A frame that came in the turn of `return()` is not the consumer's any more.
      if (frame === undefined || this.#ended) {
        this.#end();
        return { done: true, value: undefined };
      }
      // The engine passes on what the typed callbacks answered.
      return { done: false, value: tracked(frame.token, bare(frame.value) as T) };
    } catch (error) {
      this.#end();
      throw toFeedError(error);
    }
  }

  /** Ends the feed. Never rejects: tRPC would report the unsubscribe as a failure. */
  return(): Promise<FeedResult<T>> {
    this.#end();
    return Promise.resolve({ done: true, value: undefined });
  }

  /** Ends the feed and rejects with the error given, as a generator does that catches nothing. */
  throw(error?: unknown): Promise<FeedResult<T>> {
    this.#end();
    return Promise.reject(error);
  }

  #end(): void {
    this.#ended = true;
    this.#reader.close();
  }
}

/** Takes the user's own `tracked()` off a value: the feed's token is the one that resumes. */
function bare(value: unknown): unknown {
  return isTrackedEnvelope(value) ? value[1] : value;
}
