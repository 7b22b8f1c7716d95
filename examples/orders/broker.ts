import type { Broker } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';

/** Where the log is kept. `memory` lives and dies with the process. */
export type BrokerKind = 'memory' | 'redis';

/** What is used where nothing was said: Redis if there is one, else what needs no server. */
export function brokerKind(env: NodeJS.ProcessEnv): BrokerKind {
  return env.REDIS_URL ? 'redis' : 'memory';
}

/** Whether the log outlives the process, so that a killed server costs its clients nothing. */
export function isDurable(kind: BrokerKind): boolean {
  return kind !== 'memory';
}

const RETENTION = { maxEntries: 10_000 } as const;

/** Opens the broker that the environment asks for: `REDIS_URL`, and `ORDERS_PREFIX` for its keys. */
export function openBroker(env: NodeJS.ProcessEnv): Broker {
  const kind = brokerKind(env);
  switch (kind) {
    case 'memory':
      return memoryBroker({ retention: RETENTION });
    case 'redis':
      return overRedis(env.REDIS_URL as string, env.ORDERS_PREFIX ?? 'orders-demo');
    default:
      return kind satisfies never;
  }
}

function overRedis(url: string, prefix: string): Broker {
  // Says where Redis is, and is never connected itself: the broker makes its own connections.
  const client = new Redis(url, { lazyConnect: true });
  return redisBroker({ client, prefix, retention: RETENTION });
}

/** Deletes every key of `ORDERS_PREFIX`, where there is a Redis. */
export async function forgetTopics(env: NodeJS.ProcessEnv): Promise<void> {
  if (brokerKind(env) !== 'redis') return;
  const client = new Redis(env.REDIS_URL as string);
  client.on('error', () => {});
  try {
    for await (const keys of client.scanStream({ match: `*${env.ORDERS_PREFIX}:*` })) {
      if (keys.length > 0) await client.unlink(keys);
    }
  } finally {
    client.disconnect();
  }
}
