import type { BrokerHarness } from '@brokerfeed/conformance';
import type { CommitBroker } from '@brokerfeed/core';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { inject } from 'vitest';

/** Short, so that a law about a quiet topic is quick. */
const BLOCK_MS = 50;

/** Brokers on the run's Redis, under a prefix of their own, as the laws want them. */
export async function redisHarness(
  wrap: (broker: CommitBroker) => CommitBroker = (broker) => broker,
): Promise<BrokerHarness> {
  const client = new Redis(inject('redisUrl'));
  const prefix = `laws-${crypto.randomUUID()}`;
  const make = () =>
    wrap(redisBroker({ client, prefix, checkMs: BLOCK_MS, retention: { trim: 'exact' } }));
  const broker = make();
  return {
    broker,
    peer: async () => make(),
    trim: async (topic, keepCommits) => {
      await client.xtrim(`${prefix}:${topic}`, 'MAXLEN', '=', keepCommits);
    },
    drop: async (topic) => {
      await client.del(`${prefix}:${topic}`);
    },
    async [Symbol.asyncDispose]() {
      await broker.close();
      const keys = await client.keys(`*${prefix}*`);
      if (keys.length > 0) await client.unlink(keys);
      await client.quit();
    },
  };
}
