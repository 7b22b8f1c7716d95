import {
  type Broker,
  type DefinedTopic,
  type WatchFeedOptions as EngineOptions,
  type StandardSchema,
  type WatchEvent,
  WatchFeed,
} from '@brokerfeed/core';
import type { FeedLag } from '@brokerfeed/core/wire';
import { toFeedError } from './feed-error.ts';
import type { Decoded, FeedArgs, FeedResolverOptions, Uninferred } from './feed-types.ts';
import { type FeedTopic, type TopicParams, topicResolver } from './topic-option.ts';
import { WatchIterator } from './watch-iterator.ts';

/** How the text of an event becomes a value. */
export type WatchDecode = 'json' | 'text' | ((text: string) => unknown);

/** The options of `watchFeed`. */
export interface WatchFeedOptions<Context, Input, D, Schema, Mapped>
  extends Omit<EngineOptions, 'decode' | 'schema' | 'map'> {
  /**
   * Makes a value of an event's text. Without `schema`, JSON is of an unknown type.
   * @default 'json'
   */
  readonly decode?: D;
  /** Parses an event's JSON by a Standard Schema (zod, valibot, arktype). Not together with `decode`. */
  readonly schema?: Schema;
  /** Makes of a value what this subscriber gets; `undefined` skips the event. May be async. */
  readonly map?: (
    value: Decoded<D, Schema>,
    event: WatchEvent,
    args: FeedArgs<Context, Input>,
  ) => Mapped;
}

/** What clients of a watch get: values, and the frames that stand where some are missing. */
export type WatchOutput<Mapped> = AsyncIterable<
  Exclude<Awaited<Mapped>, void> | FeedLag,
  void,
  unknown
>;

/** What is called for each subscription. */
export type WatchResolver<Context, Input, Mapped> = (
  resolver: FeedResolverOptions<Context, Input>,
) => Promise<WatchOutput<Mapped>>;

/**
 * Makes the resolver of a watch of a defined topic, which brings its types and its decoding. Which topic a subscription
 * watches is for `params` to say. In all else it is as for a topic that is named.
 */
export function watchFeed<Context, Input, Params, TopicInput, Value, Mapped = Value>(
  broker: Broker,
  topic: DefinedTopic<Params, TopicInput, Value>,
  options: TopicParams<Context, Input, Params> &
    Omit<
      WatchFeedOptions<Context, Input, 'json', StandardSchema<TopicInput, Value>, Mapped>,
      'decode' | 'schema'
    >,
): WatchResolver<Context, Input, Uninferred<Mapped>>;
/**
 * Makes the resolver of a lossy subscription: `t.procedure.subscription(watchFeed(broker, 'presence', options))`. Clients
 * get what is appended or announced while they are there, at most once. There is no place to resume: a client that comes
 * back has missed what came meanwhile.
 *
 * Where something is missing there is a frame, `{ feed: 'lagged', missed }`: first of all, since what came before the watch
 * is, so again after each reconnect, and wherever the client was too slow. So read the state at each of them, and nowhere
 * else: what changes after one is read comes as an event. (Not in `onStarted`: over SSE tRPC calls it too early.)
 *
 * It ends by unsubscribing alone; where the broker is closed or cannot be read any more, with a `FeedError` of 503.
 *
 * Throws at construction: `OPTION_INVALID`, with a sentence that names the option; `UNSUPPORTED` for announcements alone of a
 * broker that carries none.
 */
export function watchFeed<
  Context,
  Input,
  D extends WatchDecode,
  Schema extends StandardSchema | undefined = undefined,
  Mapped = Decoded<D, Schema>,
>(
  broker: Broker,
  topic: FeedTopic<Context, Input>,
  options?: WatchFeedOptions<Context, Input, D, Schema, Mapped>,
): WatchResolver<Context, Input, Uninferred<Mapped>>;
export function watchFeed<Context, Input, Mapped>(
  broker: Broker,
  topic: FeedTopic<Context, Input> | DefinedTopic<unknown, unknown, unknown>,
  options: object = {},
): WatchResolver<Context, Input, Mapped> {
  const { topicOf, engine } = topicResolver<Context, Input>(topic, options);
  const feed = new WatchFeed<FeedArgs<Context, Input>>(broker, engine);
  return async (resolver) => {
    const topic = await topicOf(resolver);
    // A server-side caller may bring none; its watch ends by `return()`.
    const signal = resolver.signal ?? new AbortController().signal;
    try {
      const { ctx, input } = resolver;
      const reader = await feed.open({ topic, args: { ctx, input }, signal });
      return new WatchIterator<Exclude<Awaited<Mapped>, void> | FeedLag>(reader, signal);
    } catch (error) {
      throw toFeedError(error);
    }
  };
}
