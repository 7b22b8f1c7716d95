import {
  type Clock,
  checkRetention,
  integerOption,
  type Logger,
  type Meter,
  type Observer,
  type Retention,
  refuseOption,
  resolveObserver,
  systemClock,
} from '@brokerfeed/core';
import type { Cluster, Redis } from 'ioredis';
import { TopicKeys } from './topic-key.ts';

/** The options of `redisBroker`. */
export interface RedisBrokerOptions {
  /**
   * Says where Redis is and how to log in: a server, a primary that sentinels name, or a cluster. The broker makes
   * connections of its own like this one: it sends nothing on the client itself, and never closes it. Its `keyPrefix` is
   * put before every key.
   */
  readonly client: Redis | Redis<'resp3'> | Cluster | Cluster<'resp3'>;
  /**
   * What the keys begin with: a topic's is `<prefix>:<topic>`.
   * @default 'brokerfeed'
   */
  readonly prefix?: string;
  /**
   * What an append through this broker leaves of its topic, unless the append says so itself.
   * @default everything
   */
  readonly retention?: RedisRetention;
  /**
   * How long an idempotency key is remembered, in milliseconds.
   * @default 86_400_000 // 24 hours
   */
  readonly idempotencyWindowMs?: number;
  /**
   * How often a quiet topic is checked, in milliseconds: whether it was deleted, or rolled back by a failover. The link
   * that brings live commits is tried as often.
   * @default 5_000
   */
  readonly checkMs?: number;
  /**
   * How long Redis may owe a reply, in milliseconds. Then the connection is made anew.
   * @default 5_000
   */
  readonly replyTimeoutMs?: number;
  /**
   * How long a call goes on trying to reach a Redis that does not answer, or is not the primary, in milliseconds: a failover
   * that takes less is not noticed. An append whose answer was lost is sent again only if it has an idempotency key.
   * @default 5_000
   */
  readonly retryMs?: number;
  /**
   * The largest entry, in UTF-8 bytes of its value.
   * @default 1_048_576 // 1 MiB
   */
  readonly maxEntryBytes?: number;
  /** @default silence */
  readonly logger?: Logger;
  /** @default counts nothing */
  readonly meter?: Meter;
  /** @default the system's */
  readonly clock?: Clock;
}

/**
 * Which commits are kept. `maxEntries` counts commits here, and `maxAgeMs` goes by Redis' clock. Without a bound all are
 * kept, and Redis grows.
 */
export interface RedisRetention extends Retention {
  /**
   * `approx` keeps at least what the bounds say and up to some hundred commits more, and costs Redis next to nothing;
   * `exact` keeps just that. For the bounds of an append too.
   * @default 'approx'
   */
  readonly trim?: 'approx' | 'exact';
}

export interface ResolvedOptions {
  readonly client: Redis | Cluster;
  readonly keys: TopicKeys;
  /** 0 where unlimited, as the append script takes them. */
  readonly maxEntries: number;
  readonly maxAgeMs: number;
  readonly trim: '~' | '=';
  readonly idempotencyWindowMs: number;
  readonly checkMs: number;
  readonly replyTimeoutMs: number;
  readonly retryMs: number;
  readonly maxEntryBytes: number;
  readonly observer: Observer;
  readonly clock: Clock;
}

const DAY_MS = 24 * 60 * 60 * 1000;
const MIB = 1024 * 1024;
/** Longer waits are none of ours, and a timer's limit is near. */
const MAX_WAIT_MS = 10 * 60 * 1000;

/** A cluster has one database. */
function databaseOf({ options }: RedisBrokerOptions['client']): number {
  return 'db' in options ? (options.db ?? 0) : 0;
}

/** Checks the options and fills in defaults. Throws `OPTION_INVALID`; nothing has been connected then. */
export function resolveOptions(options: RedisBrokerOptions): ResolvedOptions {
  if (typeof options !== 'object' || options === null)
    refuseOption('options', 'an object', options);
  const { client, retention, prefix = 'brokerfeed' } = options;
  if (typeof client?.duplicate !== 'function' || typeof client.options !== 'object') {
    refuseOption('client', 'an ioredis client: new Redis(…) or new Cluster(…)', client);
  }
  const bounds = checkRetention(retention);
  const trim = retention?.trim ?? 'approx';
  if (trim !== 'approx' && trim !== 'exact') {
    refuseOption('retention.trim', `'approx' or 'exact'`, trim);
  }
  const wait = (name: 'checkMs' | 'replyTimeoutMs' | 'retryMs', min: number): number =>
    integerOption(name, options[name], 5_000, min, MAX_WAIT_MS);
  return {
    // Only duplicates are used, and these have a reply mapping of their own.
    client: client as Redis | Cluster,
    keys: new TopicKeys(client.options.keyPrefix ?? '', prefix, databaseOf(client)),
    maxEntries: bounds?.maxEntries ?? 0,
    maxAgeMs: bounds?.maxAgeMs ?? 0,
    trim: trim === 'exact' ? '=' : '~',
    idempotencyWindowMs: integerOption(
      'idempotencyWindowMs',
      options.idempotencyWindowMs,
      DAY_MS,
      1,
    ),
    checkMs: wait('checkMs', 10),
    replyTimeoutMs: wait('replyTimeoutMs', 10),
    retryMs: wait('retryMs', 0),
    maxEntryBytes: integerOption('maxEntryBytes', options.maxEntryBytes, MIB, 1),
    observer: resolveObserver(options),
    clock: options.clock ?? systemClock,
  };
}
