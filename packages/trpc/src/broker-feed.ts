import {
  type Broker,
  type BrokerLog,
  type DefinedTopic,
  Feed,
  type FeedOptions,
  type StandardSchema,
} from '@brokerfeed/core';
import { type AnyTRPCRouter, isTrackedEnvelope, type TrackedEnvelope } from '@trpc/server';
import { toFeedError } from './feed-error.ts';
import { FeedIterator, type PushTerms } from './feed-iterator.ts';
import type { BrokerFeedOptions, TopicFeedOptions } from './feed-options.ts';
import type {
  ControlValue,
  Decode,
  Decoded,
  FeedInput,
  FeedResolverOptions,
  MappedValue,
  SnapshotValue,
  Uninferred,
} from './feed-types.ts';
import { lastEventId } from './last-event-id.ts';
import { takeOffer } from './push-offer.ts';
import { type FeedTopic, topicResolver } from './topic-option.ts';

/** What a feed answers `.subscription()` with: every frame is tracked. */
export type FeedOutput<Value> = AsyncIterable<TrackedEnvelope<Value>, void, unknown>;

/** What is called for each subscription. */
export type FeedResolver<Context, Input, Mapped, Snapshot, Control> = (
  resolver: FeedResolverOptions<Context, Input>,
) => Promise<FeedOutput<MappedValue<Mapped> | SnapshotValue<Snapshot> | ControlValue<Control>>>;

/**
 * Makes the resolver of a feed of a defined topic, which brings its types and its decoding. Which topic a subscription reads
 * is for `params` to say. In all else it is as for a topic that is named.
 */
export function brokerFeed<
  Context,
  Input extends FeedInput,
  Params,
  TopicInput,
  Value,
  Prepared = Value,
  Mapped = Prepared,
  Snapshot = undefined,
  Control extends boolean | { readonly idleMs: number } = false,
>(
  broker: Broker | BrokerLog,
  topic: DefinedTopic<Params, TopicInput, Value>,
  options: TopicFeedOptions<Context, Input, Params, Value, Prepared, Mapped, Snapshot, Control>,
): FeedResolver<Context, Input, Uninferred<Mapped>, Snapshot, Control>;
/**
 * Makes the resolver of a durable, resumable subscription: `t.procedure.subscription(brokerFeed(broker, 'orders', options))`.
 * A client that comes back, to any instance, goes on after the last entry it got.
 *
 * The client's id is verified and the first page read before the iterable is returned, so that `started` is never sent to a
 * client that is then refused. A refusal is a `FeedError`: 400, 410 or 503. The feed ends by unsubscribing alone, or with
 * such an error, and where `onEntryError` says so with 422.
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
  options?: BrokerFeedOptions<Context, Input, D, Schema, Prepared, Mapped, Snapshot, Control>,
): FeedResolver<Context, Input, Uninferred<Mapped>, Snapshot, Control>;
export function brokerFeed<Context, Input, Mapped, Snapshot, Control>(
  broker: Broker | BrokerLog,
  topic: FeedTopic<Context, Input> | DefinedTopic<unknown, unknown, unknown>,
  options: object = {},
): FeedResolver<Context, Input, Mapped, Snapshot, Control> {
  const { topicOf, engine } = topicResolver<Context, Input>(topic, options);
  const feed = new Feed(broker, engineOptions(engine));
  return async (resolver) => {
    const terms = pushTerms(resolver);
    // Called after tRPC's loop has begun, in its turn if at all: by a generator that wraps this feed.
    const connection = terms?.signal.onabort ? takeOffer() : undefined;
    // First: the topic's function may trust that the input is of the kind it is typed as.
    const id = await lastEventId(resolver);
    const name = await topicOf(resolver);
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
