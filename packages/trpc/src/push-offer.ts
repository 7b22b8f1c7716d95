import type { FeedReader } from '@brokerfeed/core';

/** Turns data into what the client's side of the transformer reads. */
export interface Serializer {
  serialize(data: unknown): unknown;
}

/** A connection that would take a feed's frames directly, in place of values through its adapter's loop. */
export interface PushOffer {
  /** Pushes a feed to the subscription that has just started. Settles as `FeedReader.push` does. */
  push(reader: Pick<FeedReader, 'push'>, serializer: Serializer): Promise<void>;
  /** Resolves when the connection takes more; undefined where it does now. */
  whenWritable(): Promise<void> | undefined;
}

let current: PushOffer | undefined;

/**
 * Offers a connection to whichever iterator is taken in this turn. An adapter that says `started` and takes the iterator
 * in one turn, as tRPC's does, says by that which iterator belongs to which subscription.
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
