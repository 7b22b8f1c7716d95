import type { FeedFrame, FeedReader, PushTarget } from '@brokerfeed/core';
import { isTrackedEnvelope, type TrackedEnvelope } from '@trpc/server';
import { toFeedError } from './feed-error.ts';
import { type PushOffer, type Serializer, takeOffer, untilWritable } from './push-offer.ts';
import { trackedFrame } from './tracked-frame.ts';
import { turnstile } from './turnstile.ts';

/** What one call of an iterator's method resolves with. */
export type FeedResult<T> = IteratorResult<TrackedEnvelope<T>, undefined>;

const DONE = { done: true, value: undefined } as const;

/** What a feed must know of its call to be pushed rather than pulled. */
export interface PushTerms {
  readonly signal: AbortSignal;
  readonly serializer: Serializer;
}

/** The connection that seems to be ours. */
interface Gate extends PushTerms {
  readonly connection: PushOffer;
}

/** Whether values are pulled, may be pushed, or are to be. */
type Mode =
  | { readonly mode: 'pull'; readonly gate: Gate | undefined }
  /** Taken in the turn in which a connection said `started`; not yet by whom. */
  | { readonly mode: 'offered'; readonly gate: Gate }
  /** Taken by tRPC's own loop. The first value goes through it, and is watched: what becomes of it decides. */
  | { readonly mode: 'trial'; readonly gate: Gate; readonly passed: (() => boolean) | undefined }
  /** Pushed to a target that is known beforehand to get all that is answered here, once it says that it stands. */
  | { readonly mode: 'target'; readonly opened: Promise<PushTarget | undefined> };

/** One object for all who are pulled by whom we do not know, or pushed: there may be very many. */
const PULL: Mode = { mode: 'pull', gate: undefined };

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
  readonly #reader: FeedReader;
  /** Until it is iterated. */
  #terms: PushTerms | undefined;
  #mode: Mode = PULL;
  #iterated = false;
  #ended = false;

  /**
   * Without `terms` the feed is always pulled. So is one whose `connection` is known already: it was opened inside the
   * wrapper that sends there.
   */
  constructor(reader: FeedReader, terms?: PushTerms, connection?: PushOffer) {
    this.#reader = reader;
    this.#terms = terms;
    if (terms && connection) this.#mode = { mode: 'pull', gate: gateOf(connection, terms) };
  }

  /** Answers the feed that a value is, if it is one as it was made: no proxy, no method put in the place of ours. */
  static intact(value: unknown): FeedIterator<unknown> | undefined {
    if (typeof value !== 'object' || value === null || !(#mode in value)) return undefined;
    const isOurs = Object.getPrototypeOf(value) === FeedIterator.prototype;
    return isOurs && Reflect.ownKeys(value).length === 0 ? value : undefined;
  }

  /**
   * Has the frames pushed to a target, for a carrier that knows that nothing stands between. Called before the iteration.
   * Where undefined is opened, they are pulled as ever.
   */
  pushTo(opened: Promise<PushTarget | undefined>): void {
    this.#mode = { mode: 'target', opened };
  }

  /** Starts the iteration. A second call throws: two loops would each miss what the other got. */
  [Symbol.asyncIterator](): this {
    if (this.#iterated) throw new TypeError('a feed is iterated once: call the procedure again');
    this.#iterated = true;
    if (this.#mode.mode === 'target') return this;
    const connection = takeOffer();
    const terms = this.#terms;
    this.#terms = undefined;
    if (connection === undefined || terms === undefined) return this;
    const gate = gateOf(connection, terms);
    // tRPC's loop sets `onabort` before its first `next()`, and a wrapper iterates us in its own first `next()`: so a
    // handler that is there already tells that somebody stands between, whose values must not be bypassed.
    const mode = terms.signal.onabort === null ? 'offered' : 'pull';
    this.#mode = { mode, gate };
    return this;
  }

  /**
   * Ends the feed. That it is read tells more: tRPC's own loop reads it before the first `next()`, `for await` and
   * `yield*` never do. So nothing stands between us and the connection.
   */
  get [Symbol.asyncDispose](): () => Promise<void> {
    const mode = this.#mode;
    if (mode.mode === 'offered' && FeedIterator.intact(this) !== undefined) {
      this.#mode = { mode: 'trial', gate: mode.gate, passed: undefined };
    }
    return async () => this.#end();
  }

  /** Waits for the next frame. Calls that overlap are answered in order. Stays pending while frames are pushed. */
  next(): Promise<FeedResult<T>> {
    const mode = this.#mode;
    switch (mode.mode) {
      case 'target':
        return this.#pushOrPull(mode.opened);
      case 'trial': {
        // In the turn of the call: tRPC's loop asks again in the turn in which it has sent.
        const passed = mode.passed?.();
        if (passed === true) return this.#push(mode.gate);
        if (passed === false) this.#mode = { mode: 'pull', gate: mode.gate };
        return this.#pull(mode.gate);
      }
      case 'pull':
      case 'offered':
        return this.#pull(mode.gate);
      default:
        return mode satisfies never;
    }
  }

  /** Ends the feed. Never rejects: tRPC would report the unsubscribe as a failure. */
  return(): Promise<FeedResult<T>> {
    this.#end();
    return Promise.resolve(DONE);
  }

  /** Ends the feed and rejects with the error given, as a generator does that catches nothing. */
  throw(error?: unknown): Promise<FeedResult<T>> {
    this.#end();
    return Promise.reject(error);
  }

  async #pushOrPull(opened: Promise<PushTarget | undefined>): Promise<FeedResult<T>> {
    const target = await opened;
    this.#mode = PULL;
    return target === undefined ? this.next() : this.#untilEnd(this.#reader.push(target));
  }

  #push({ connection, serializer }: Gate): Promise<FeedResult<T>> {
    this.#mode = PULL;
    return this.#untilEnd(connection.push(this.#reader, serializer));
  }

  #untilEnd(pushed: Promise<void>): Promise<FeedResult<T>> {
    return pushed.then(
      () => DONE,
      (error) => this.#fail(error),
    );
  }

  // No async function here, nor in what it calls: while a subscription waits, its frame would weigh more than all the rest.
  #pull(gate: Gate | undefined): Promise<FeedResult<T>> {
    if (gate?.connection.isFull())
      return untilWritable(gate.connection, gate.signal).then(() => this.#read());
    return this.#read();
  }

  #read(): Promise<FeedResult<T>> {
    if (this.#ended) return Promise.resolve(DONE);
    return this.#reader.next().then(
      (frame) => {
        const turn = frame === undefined ? undefined : turnstile.pass();
        return turn === undefined ? this.#result(frame) : turn.then(() => this.#result(frame));
      },
      (error) => this.#fail(error),
    );
  }

  #result(frame: FeedFrame | undefined): FeedResult<T> {
    // A frame that came in the turn of `return()` is not the consumer's any more.
    if (frame === undefined || this.#ended) {
      this.#end();
      return DONE;
    }
    // The engine passes on what the typed callbacks answered.
    const value = trackedFrame(frame.token, bare(frame.value) as T);
    const mode = this.#mode;
    if (mode.mode === 'trial') {
      const { connection, serializer } = mode.gate;
      this.#mode = { ...mode, passed: connection.watch(value, serializer) };
    }
    return { done: false, value };
  }

  #fail(error: unknown): never {
    this.#end();
    throw toFeedError(error);
  }

  #end(): void {
    this.#ended = true;
    this.#reader.close();
  }
}

// Not by a spread: that gives every object a hidden class of its own, which weighs four times as much as the object.
function gateOf(connection: PushOffer, { signal, serializer }: PushTerms): Gate {
  return { connection, signal, serializer };
}

/** Takes the user's own `tracked()` off a value: the feed's token is the one that resumes. */
function bare(value: unknown): unknown {
  return isTrackedEnvelope(value) ? value[1] : value;
}
