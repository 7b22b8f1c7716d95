import { fileURLToPath } from 'node:url';
import type { Broker } from '@brokerfeed/core';
import { journalBroker } from '@brokerfeed/journal';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';

/**
 * Opens the broker that the environment asks for: a Redis by `REDIS_URL`, or else a journal in `GRAPH_DIR`. Without a
 * retention: the store is made anew from its log, so the log keeps everything.
 */
export function openBroker(env: NodeJS.ProcessEnv): Broker {
  if (env.REDIS_URL) {
    const client = new Redis(env.REDIS_URL, { lazyConnect: true });
    return redisBroker({ client, prefix: env.GRAPH_PREFIX ?? 'graph-demo' });
  }
  return journalBroker({
    dir: env.GRAPH_DIR ?? fileURLToPath(new URL('.data', import.meta.url)),
  });
}
