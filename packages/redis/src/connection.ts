import { BrokerError } from '@brokerfeed/core';
import type { Redis } from 'ioredis';

/** A connection of our own, ready for commands. */
export interface Connection {
  readonly redis: Redis;
  /** What CLIENT UNBLOCK calls this connection; undefined where the server does not say. */
  readonly clientId: number | undefined;
  /** The process at the other end. A client id means another connection, or none, on another server. */
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
}

/**
 * Opens a connection like the user's, with what would hurt us switched off. It is never mended: ioredis would send
 * unanswered commands again, or forget them unsettled. When it breaks, everything under way rejects, and whoever needs one
 * opens the next.
 */
export async function connect(client: Redis, options: ConnectOptions): Promise<Connection> {
  options.signal.throwIfAborted();
  const redis = client.duplicate({
    lazyConnect: true,
    connectionName: client.options.connectionName || options.name,
    keyPrefix: '',
    retryStrategy: null,
    reconnectOnError: null,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    enableOfflineQueue: true,
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
    const [clientId, server] = await Promise.all([
      redis.client('ID').catch(unlessLost),
      redis.info('server').catch(unlessLost),
    ]);
    const serverId = /^run_id:(\S+)/m.exec(server ?? '')?.[1];
    options.signal.throwIfAborted();
    return { redis, clientId, serverId, close };
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
function unlessLost(error: unknown): undefined {
  if (error instanceof Error && error.name === 'ReplyError') return undefined;
  throw error;
}
