import { testBroker } from '@brokerfeed/conformance';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { inject } from 'vitest';

/** Short, so that a law about a quiet topic is quick. */
const BLOCK_MS = 50;
const RUNS = 100;

testBroker(
  'redis broker',
  async () => {
    const client = new Redis(inject('redisUrl'));
    const prefix = `conformance-${crypto.randomUUID()}`;
    const make = () => redisBroker({ client, prefix, blockMs: BLOCK_MS });
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
  },
  { runs: RUNS },
);
