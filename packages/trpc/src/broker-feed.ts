import {
  type Broker,
  BrokerError,
  type BrokerLog,
  checkTopic,
  Feed,
  type FeedOptions,
  type StandardSchema,
} from '@brokerfeed/core';
import { type AnyTRPCRouter, isTrackedEnvelope, type TrackedEnvelope } from '@trpc/server';
import { toFeedError } from './feed-error.ts';
import { FeedIterator, type PushTerms } from './feed-iterator.ts';
import type { BrokerFeedOptions } from './feed-options.ts';
import type {
  ControlValue,
  Decode,
  Decoded,
  FeedInput,
  FeedResolverOptions,
  MappedValue,
  SnapshotValue,
} from './feed-types.ts';
import { lastEventId } from './last-event-id.ts';
import { takeOffer } from './push-offer.ts';

/** The topic of a feed, or how a subscription's topic is found. What the function throws reaches the client as it is. */
export type FeedTopic<Context, Input> =
  | string
  | ((options: FeedResolverOptions<Context, Input>) => string | Promise<string>);

/** What a feed answers `.subscription()` with: every frame is tracked. */
export type FeedOutput<Value> = AsyncIterable<TrackedEnvelope<Value>, void, unknown>;

/**
 * Makes the resolver of a durable, resumable subscription: `t.procedure.subscription(brokerFeed(broker, 'orders', options))`.
 * A client that comes back, to any instance, goes on after the last entry it got.
 *
 * The client's id is verified and the first page read before the iterable is returned, so that `started` is never sent to a
 * client that is then refused. A refusal is a `FeedError`: 400, 410 or 503. The feed ends by unsubscribing alone.
 *
 * Throws `OPTION_INVALID` at construction, with a sentence that names the option.
 */
export function brokerFeed<
  Context,
  Input extends FeedInput,
  D extends Decode,
  Schema extends StandardSchema | undefined = undefined,
  Prepared = Decoded<D, Schema>,
  Mapped = Prepared,
  Snapshot = undefined,
  Control extends boolean | { readonly idleMs: number } = false,
>(
  broker: Broker | BrokerLog,
  topic: FeedTopic<Context, Input>,
  options: BrokerFeedOptions<Context, Input, D, Schema, Prepared, Mapped, Snapshot, Control> = {},
): (
  resolver: FeedResolverOptions<Context, Input>,
) => Promise<FeedOutput<MappedValue<Mapped> | SnapshotValue<Snapshot> | ControlValue<Control>>> {
  checkTopicOption(topic);
  const feed = new Feed(broker, engineOptions(options));
  return async (resolver) => {
    const terms = pushTerms(resolver);
    // Called after tRPC's loop has begun, in its turn if at all: by a generator that wraps this feed.
    const connection = terms?.signal.onabort ? takeOffer() : undefined;
    // First: the topic's function may trust that the input is of the kind it is typed as.
    const id = await lastEventId(resolver);
    const name = typeof topic === 'function' ? await topic(resolver) : topic;
    try {
      const reader = await feed.open({
        topic: name,
        lastEventId: id,
        args: { ctx: resolver.ctx, input: resolver.input },
        // A server-side caller may bring none; its feed ends by `return()`.
        signal: resolver.signal ?? new AbortController().signal,
      });
      return new FeedIterator(reader, terms, connection);
    } catch (error) {
      throw toFeedError(error);
    }
  };
}

/** Where the adapter shows the router (tRPC's WebSocket adapter does), its transformer is known, and frames can be pushed. */
function pushTerms(resolver: FeedResolverOptions<unknown, unknown>): PushTerms | undefined {
  const { signal, router } = resolver as {
    signal: AbortSignal | undefined;
    router?: AnyTRPCRouter;
  };
  const serializer = router?._def?._config?.transformer?.output;
  return signal === undefined || serializer === undefined ? undefined : { signal, serializer };
}

function checkTopicOption(topic: unknown): void {
  if (typeof topic === 'function') return;
  try {
    checkTopic(topic);
  } catch (error) {
    throw new BrokerError(
      'OPTION_INVALID',
      `topic: ${(error as Error).message}, or a function that answers one`,
    );
  }
}

function engineOptions(options: object): FeedOptions {
  const given = options as FeedOptions;
  const onGap: unknown = given.onGap;
  // tRPC's `tracked()` is an array: the engine would stream its three items.
  if (typeof onGap !== 'function') return given;
  return {
    ...given,
    onGap: async (...args: unknown[]) => {
      const snapshot: unknown = await onGap(...args);
      return isTrackedEnvelope(snapshot) ? [snapshot] : snapshot;
    },
  };
}
