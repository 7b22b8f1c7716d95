import type { Broker } from '@brokerfeed/core';
import { type BrokerFeedOptions, brokerFeed } from '@brokerfeed/trpc';
import { expect } from 'vitest';
import { SIGNED } from './router.ts';

type PlainOptions = BrokerFeedOptions<
  { user?: string },
  undefined,
  'json',
  undefined,
  unknown,
  unknown,
  undefined,
  false
>;

/** Appends one entry and answers the token that a feed of this topic gives out with it. */
export async function mintToken(
  broker: Broker,
  topic: string,
  options: PlainOptions = SIGNED,
  ctx: { user?: string } = {},
): Promise<string> {
  const left = new AbortController();
  const feed = await brokerFeed(
    broker,
    topic,
    options,
  )({ ctx, input: undefined, signal: left.signal, path: '' });
  await broker.log.append(topic, '"minted"');
  for await (const [token] of feed) {
    left.abort();
    return token;
  }
  return expect.fail('the feed ended');
}
