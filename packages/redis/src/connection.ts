import { BrokerError } from '@brokerfeed/core';
import type { Redis } from 'ioredis';
import { isReplica } from './primary.ts';
import { isReplyError } from './redis-error.ts';
import type { Address } from './slot-map.ts';

/** A connection of our own, ready for commands. */
export interface Connection {
  readonly redis: Redis;
  /** The process at the other end; undefined where the server does not say. */
  readonly serverId: string | undefined;
  /** Ends it, with whatever is under way. Resolves when the socket is closed. */
  close(): Promise<void>;
}

export interface ConnectOptions {
  /** Shown by CLIENT LIST, unless the user's client has a name. */
  readonly name: string;
  /** How long the server may be silent while it owes a reply. Then the socket is destroyed: half-open links look quiet. */
  readonly silenceMs: number;
  /** Aborts the attempt, with its reason. */
  readonly signal: AbortSignal;
  /**
   * Whether a replica will do.
   * @default 'primary'
   */
  readonly role?: 'primary' | 'any';
  /**
   * What to do about a server that is loading its data, which may take minutes.
   * @default 'reject'
   */
  readonly loading?: 'reject' | 'wait';
}

const LOADING_RETRY_MS = 250;

/**
 * Opens a connection like the user's, with what would hurt us switched off. It is never mended: ioredis would send
 * unanswered commands again, or forget them unsettled. When it breaks, everything under way rejects, and whoever needs one
 * opens the next. `address` is a node of a cluster to connect to in place of the model's.
 */
export async function connect(
  model: Redis,
  options: ConnectOptions,
  address?: Address,
): Promise<Connection> {
  options.signal.throwIfAborted();
  const { connectionName, connectTimeout = options.silenceMs } = model.options;
  const redis = model.duplicate({
    ...address,
    lazyConnect: true,
    connectionName: connectionName || options.name,
    disableClientInfo: true,
    keyPrefix: '',
    connectTimeout: Math.min(connectTimeout, options.silenceMs),
    retryStrategy: null,
    // Whoever calls tries again, and for as long as that makes sense.
    sentinelRetryStrategy: () => null,
    role: 'master',
    reconnectOnError: null,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    enableOfflineQueue: true,
    // This is what waits for a server that loads its data.
    enableReadyCheck: options.loading === 'wait',
    maxLoadingRetryTime: LOADING_RETRY_MS,
    enableAutoPipelining: false,
    socketTimeout: options.silenceMs,
    commandTimeout: undefined,
    blockingTimeout: undefined,
    protocol: 2,
    replyMapping: 'legacy',
    stringNumbers: false,
    monitor: false,
    readOnly: false,
    scripts: undefined,
    himportFieldsets: undefined,
  });
  let failure: unknown;
  redis.on('error', (error) => {
    failure = error;
  });
  const close = (): Promise<void> => {
    if (redis.status === 'end') return Promise.resolve();
    return new Promise((resolve) => {
      redis.once('end', () => resolve());
      redis.disconnect();
    });
  };
  const abort = (): void => redis.disconnect();
  options.signal.addEventListener('abort', abort, { once: true });
  try {
    await redis.connect();
    const sections = ['server', 'persistence', 'replication'] as const;
    const info = (await redis.info(...sections).catch(unlessRefused)) ?? '';
    // A database that was refused: ioredis goes on in the first one.
    if (failure !== undefined) throw failure;
    if (/^loading:1/m.test(info)) throw new Error('it is loading its data');
    if (options.role !== 'any' && isReplica(info)) throw new Error('it is a replica');
    const serverId = /^run_id:(\S+)/m.exec(info)?.[1];
    options.signal.throwIfAborted();
    return { redis, serverId, close };
  } catch (error) {
    await close();
    options.signal.throwIfAborted();
    const cause = failure ?? error;
    const why = cause instanceof Error ? cause.message || cause.name : String(cause);
    throw new BrokerError('UNAVAILABLE', `cannot connect to Redis: ${why}`, { cause });
  } finally {
    options.signal.removeEventListener('abort', abort);
  }
}

/** A server that refuses to say does without; a broken connection is an error. */
function unlessRefused(error: unknown): undefined {
  if (isReplyError(error)) return undefined;
  throw error;
}
