import {
  BrokerError,
  checkTopic,
  DefinedTopic,
  FeedRefusal,
  functionOption,
  isBrokerError,
  refuseOption,
} from '@brokerfeed/core';
import { toFeedError } from './feed-error.ts';
import type { FeedResolverOptions } from './feed-types.ts';

/** The topic of a feed, or how a subscription's topic is found. What the function throws reaches the client as it is. */
export type FeedTopic<Context, Input> =
  | string
  | ((options: FeedResolverOptions<Context, Input>) => string | Promise<string>);

/** What a feed of a defined topic needs besides. */
export interface TopicParams<Context, Input, Params> {
  /**
   * Answers which topic a subscription reads. It is also where access is decided: what it throws reaches the client as it is.
   */
  readonly params: (options: FeedResolverOptions<Context, Input>) => Params | Promise<Params>;
}

/** Which topic a subscription reads, and the options that are left for the engine. */
export interface ResolvedTopic<Context, Input> {
  readonly topicOf: (options: FeedResolverOptions<Context, Input>) => string | Promise<string>;
  readonly engine: object;
}

/** Reads the topic argument of a feed. Throws `OPTION_INVALID`. */
export function topicResolver<Context, Input>(
  topic: FeedTopic<Context, Input> | DefinedTopic<unknown, unknown, unknown>,
  options: object,
): ResolvedTopic<Context, Input> {
  if (topic instanceof DefinedTopic) return definedResolver(topic, options);
  if (typeof topic === 'function') return { topicOf: topic, engine: options };
  checkTopicOption(topic);
  return { topicOf: () => topic, engine: options };
}

function definedResolver<Context, Input>(
  topic: DefinedTopic<unknown, unknown, unknown>,
  options: object,
): ResolvedTopic<Context, Input> {
  const { params, ...engine } = options as TopicParams<Context, Input, unknown>;
  if (params === undefined) refuseOption('params', 'a function', params);
  functionOption('params', params);
  for (const name of ['decode', 'schema'] as const) {
    const given = (engine as Record<string, unknown>)[name];
    if (given !== undefined) refuseOption(name, "not given: the topic's schema decodes", given);
  }
  return {
    topicOf: async (resolver) => {
      const given = await params(resolver);
      try {
        return topic.name(given);
      } catch (error) {
        // Params that name no topic are the client's, or were let through: never a 5xx, which it would retry for ever.
        if (!isBrokerError(error, 'TOPIC_INVALID')) throw error;
        throw toFeedError(new FeedRefusal('topic', { cause: error }));
      }
    },
    engine: { ...engine, schema: topic.schema },
  };
}

function checkTopicOption(topic: unknown): void {
  try {
    checkTopic(topic);
  } catch (error) {
    throw new BrokerError(
      'OPTION_INVALID',
      `topic: ${(error as Error).message}, or a function that answers one`,
    );
  }
}
