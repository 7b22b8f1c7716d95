import type { FeedReader } from '@brokerfeed/core';
import type { TrackedEnvelope } from '@trpc/server';

/** Turns data into what the client's side of the transformer reads. */
export interface Serializer {
  serialize(data: unknown): unknown;
}

/** A connection that would take a feed's frames directly, in place of values through its adapter's loop. */
export interface PushOffer {
  /**
   * Watches how the adapter sends an envelope that it is about to be answered. The function tells, in the turn in which
   * that was done, whether it left on this connection, untouched, in the very bytes that a push would have written.
   */
  watch(envelope: TrackedEnvelope<unknown>, serializer: Serializer): () => boolean;
  /** Pushes a feed to the subscription that has just started. Settles as `FeedReader.push` does. */
  push(reader: Pick<FeedReader, 'push'>, serializer: Serializer): Promise<void>;
  /** Whether so much waits to be sent that no more should be. */
  isFull(): boolean;
  /** Calls back once, when it is full no more; not at all if it is gone. */
  whenWritable(callback: () => void): void;
}

/** Waits until a connection has drained, but no longer than until the subscription ends. */
export function untilWritable(connection: PushOffer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      signal.removeEventListener('abort', done);
      resolve();
    };
    if (signal.aborted) return done();
    signal.addEventListener('abort', done);
    connection.whenWritable(done);
  });
}

let current: PushOffer | undefined;

/**
 * Offers a connection to whichever iterator is taken in this turn. An adapter that says `started` and takes the iterator
 * in one turn, as tRPC's does, says by that which iterator belongs to which subscription.
 *
 * A turn cannot be told from the next one with certainty: an iterator that an unrelated connection takes at the wrong
 * moment may get the offer too. Hence {@link PushOffer.watch}.
 */
export function makeOffer(offer: PushOffer): void {
  current = offer;
  queueMicrotask(() => {
    if (current === offer) current = undefined;
  });
}

/** Takes the offer of this turn, if there is one. */
export function takeOffer(): PushOffer | undefined {
  const offer = current;
  current = undefined;
  return offer;
}
