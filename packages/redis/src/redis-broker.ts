import type { CommitBroker } from '@brokerfeed/core';
import { type RedisBrokerOptions, resolveOptions } from './options.ts';
import { RedisLog } from './redis-log.ts';

/**
 * Makes a broker on Redis Streams, for services of any number of instances. An append resolves when the primary has
 * executed it: how durable that is, Redis' persistence and replication settle.
 *
 * Throws `OPTION_INVALID`. Connects when first used: a Redis that is older than 7 or cannot be reached rejects what was asked
 * of it, as `UNSUPPORTED` or `UNAVAILABLE`.
 *
 * In a cluster, commits across topics take a prefix with a `{hash tag}`; without one they are refused as `UNSUPPORTED`.
 */
export function redisBroker(options: RedisBrokerOptions): CommitBroker {
  const log = new RedisLog(resolveOptions(options));
  const close = (): Promise<void> => log.close();
  return { name: 'redis', log, announcer: log.announcer, close, [Symbol.asyncDispose]: close };
}
