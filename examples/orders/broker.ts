import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Broker } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';
import { journalBroker } from '@brokerfeed/journal';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';

/** Where the log is kept: in files of one process, on a server for many, or only as long as the process lives. */
export type BrokerKind = 'journal' | 'redis' | 'memory';

/** What the environment asks for: `ORDERS_BROKER=memory`, or a Redis by `REDIS_URL`, or what needs nothing. */
export function brokerKind(env: NodeJS.ProcessEnv): BrokerKind {
  if (env.ORDERS_BROKER === 'memory') return 'memory';
  return env.REDIS_URL ? 'redis' : 'journal';
}

/** The folder of everything that is kept in files: `ORDERS_DIR`, or `.data` beside this file. */
export function dataDir(env: NodeJS.ProcessEnv): string {
  return env.ORDERS_DIR ?? fileURLToPath(new URL('.data', import.meta.url));
}

/** Whether the log outlives the process, so that a killed server costs its clients nothing. */
export function isDurable(kind: BrokerKind): boolean {
  return kind !== 'memory';
}

const RETENTION = { maxEntries: 10_000 } as const;

/** Opens the broker that the environment asks for. In Redis, its keys begin with `ORDERS_PREFIX`. */
export function openBroker(env: NodeJS.ProcessEnv): Broker {
  const kind = brokerKind(env);
  switch (kind) {
    case 'journal':
      return journalBroker({ dir: join(dataDir(env), 'journal'), retention: RETENTION });
    case 'redis':
      return overRedis(env.REDIS_URL as string, env.ORDERS_PREFIX ?? 'orders-demo');
    case 'memory':
      return memoryBroker({ retention: RETENTION });
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
