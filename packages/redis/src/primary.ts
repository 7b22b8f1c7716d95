import type { Redis } from 'ioredis';
import { isReplyError, NoPrimaryError } from './redis-error.ts';

/** Reads INFO's `replication`. */
export function isReplica(info: string): boolean {
  return /^role:slave/m.test(info);
}

/**
 * Rejects with {@link NoPrimaryError} where the server is a replica. One that was made a replica keeps its connections, and
 * answers reads with what it has, which need not be what its primary has.
 */
export async function requirePrimary(redis: Redis): Promise<void> {
  let info: string;
  try {
    info = await redis.info('replication');
  } catch (error) {
    // A server that refuses to say does without.
    if (isReplyError(error)) return;
    throw error;
  }
  if (isReplica(info)) throw new NoPrimaryError();
}
