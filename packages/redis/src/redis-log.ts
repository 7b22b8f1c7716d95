import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  type AppendedAll,
  type AppendOptions,
  type Bounds,
  BrokerError,
  type CheckedTopicAppend,
  type CommitLog,
  checkAppend,
  checkAppendAll,
  checkTopic,
  describe,
  type Entry,
  type Loss,
  newEpoch,
  type Observer,
  type Page,
  type Position,
  type Sink,
  type Start,
  type TopicAppend,
} from '@brokerfeed/core';
import type { Cluster, Redis } from 'ioredis';
import { RedisAnnouncer } from './announcer.ts';
import { APPEND_ALL_SCRIPT, appendAllArgs } from './append-all-script.ts';
import { APPEND_SCRIPT, type AppendPolicy, appendArgs } from './append-script.ts';
import { ClusterServers } from './cluster.ts';
import { Commands, type Send } from './commands.ts';
import { elapsed } from './elapsed.ts';
import { EvictionWarning } from './eviction-warning.ts';
import { follow } from './follow.ts';
import { LiveReaders } from './live-readers.ts';
import type { ResolvedOptions } from './options.ts';
import { type PageReply, readPage } from './page-reply.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { requirePrimary } from './primary.ts';
import { Script } from './script.ts';
import { type Servers, singleServer } from './servers.ts';
import { canonicalId, NO_ID } from './stream-id.ts';
import { TIPS } from './tips-script.ts';
import { until } from './until.ts';

/** Bytes after which a page ends, whatever its limit; between commits, and not before the first. */
const PAGE_BYTES = 1024 * 1024;

const APPEND = new Script(APPEND_SCRIPT);
const APPEND_ALL = new Script(APPEND_ALL_SCRIPT);
const PAGE = new Script(PAGE_SCRIPT);

/** Topics as Redis streams. */
export class RedisLog implements CommitLog {
  readonly observer: Observer;
  readonly announcer: RedisAnnouncer;
  readonly #options: ResolvedOptions;
  readonly #servers: Servers;
  readonly #commands: Commands;
  readonly #readers: LiveReaders;
  /** When a connection was last asked whether it is the primary's. */
  readonly #provedAt = new WeakMap<Redis, number>();
  readonly #closing = new AbortController();
  readonly #appends = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(options: ResolvedOptions) {
    this.observer = options.observer;
    this.#options = options;
    // As many listeners as there are reads under way.
    setMaxListeners(0, this.#closing.signal);
    const warning = new EvictionWarning(options.observer.logger);
    const servers = serversOf(options, this.#closing.signal);
    this.#servers = servers;
    this.#commands = new Commands(
      options,
      servers,
      [APPEND, APPEND_ALL, PAGE, TIPS],
      this.#closing.signal,
      ({ redis }) => warning.check(redis),
    );
    this.#readers = new LiveReaders(options, servers, this.#commands);
    this.announcer = new RedisAnnouncer(options, this.#commands, this.#readers);
  }

  async append(
    topic: string,
    value: string | readonly string[],
    options: AppendOptions = {},
  ): Promise<Position> {
    this.#closing.signal.throwIfAborted();
    const write = checkAppend(topic, value, options, this.#options.maxEntryBytes);
    const { keys } = this.#options;
    const topicKey = keys.topic(topic);
    const { entries, idempotencyKey } = write;
    const keyed = idempotencyKey !== undefined;
    const scriptKeys = keyed ? [topicKey, keys.once(topicKey, idempotencyKey)] : [topicKey];
    const args = appendArgs(this.#policy(keyed ? valuesOf(entries) : undefined), write);
    const doing = `an append to topic ${describe(topic)}`;
    const reply = await this.#append(doing, keyed, topicKey, (redis) =>
      APPEND.call(redis, scriptKeys, args),
    );
    // Typed unknown by ioredis: what the script returns.
    const [epoch, id, ordinal] = reply as readonly [string, string, number];
    return { epoch, id, ordinal };
  }

  async appendAll(
    appends: readonly TopicAppend[],
    options: { readonly idempotencyKey?: string } = {},
  ): Promise<AppendedAll> {
    this.#closing.signal.throwIfAborted();
    const writes = checkAppendAll(appends, options, this.#options.maxEntryBytes);
    const { keys } = this.#options;
    const { idempotencyKey } = options;
    const keyed = idempotencyKey !== undefined;
    const topicKeys = writes.map(({ topic }) => keys.topic(topic));
    const scriptKeys = keyed ? [...topicKeys, keys.onceForAll(idempotencyKey)] : topicKeys;
    const [first] = topicKeys;
    if (first === undefined || this.#servers.together(scriptKeys).length > 1) throw apart(writes);
    const values = writes.map(({ topic, entries }) => [topic, valuesOf(entries)]);
    const args = appendAllArgs(this.#policy(keyed ? values : undefined), writes);
    const doing = `an append to ${writes.length} topics`;
    const reply = await this.#append(doing, keyed, first, (redis) =>
      APPEND_ALL.call(redis, scriptKeys, args),
    );
    // Typed unknown by ioredis: what the script returns, three for each topic.
    const places = reply as readonly (string | number)[];
    const positions = writes.map((_, at): Position => {
      const [epoch, id, ordinal] = places.slice(at * 3, at * 3 + 3);
      return { epoch: String(epoch), id: String(id), ordinal: Number(ordinal) };
    });
    return { positions };
  }

  async page(topic: string, from: Start, limit: number, signal?: AbortSignal): Promise<Page> {
    this.#closing.signal.throwIfAborted();
    checkTopic(topic);
    signal?.throwIfAborted();
    const key = this.#options.keys.topic(topic);
    const args = [newEpoch(), ...startArgs(from, limit)];
    const read = async (redis: Redis): Promise<PageReply> => {
      const [reply] = await Promise.all([PAGE.call(redis, [key], args), this.#provePrimary(redis)]);
      // Typed unknown by ioredis: what the script returns.
      const page = reply as PageReply;
      // A replica may lack what a good position names.
      if (page[0] !== 'ok') await requirePrimary(redis);
      return page;
    };
    const running = this.#commands.run(key, read, {
      doing: `a read of topic ${describe(topic)}`,
      repeatable: true,
      signal,
    });
    return readPage(await until(running, this.#closing.signal, signal));
  }

  /** Now and then, since a primary that was made a replica keeps its connections, and answers with what it had then. */
  async #provePrimary(redis: Redis): Promise<void> {
    const { clock, checkMs } = this.#options;
    const provedAt = this.#provedAt.get(redis);
    if (provedAt !== undefined && elapsed(clock, provedAt) < checkMs) return;
    this.#provedAt.set(redis, clock.now());
    await requirePrimary(redis);
  }

  async follow(
    topic: string,
    from: Position,
    sink: Sink,
    signal: AbortSignal,
  ): Promise<Loss | undefined> {
    this.#closing.signal.throwIfAborted();
    checkTopic(topic);
    const { keys, clock } = this.#options;
    const key = keys.topic(topic);
    try {
      return await follow(from, {
        page: (at, limit) => this.page(topic, at, limit, signal),
        watch: (events) => {
          this.#closing.signal.throwIfAborted();
          return this.#readers.watch(key, events);
        },
        sink,
        signal,
        clock,
      });
    } catch (error) {
      if (signal.aborted) return undefined;
      throw error;
    }
  }

  async bounds(topic: string): Promise<Bounds> {
    return (await this.page(topic, 'latest', 0)).bounds;
  }

  /** `values` are those that an idempotency key stands for. */
  #policy(values: unknown): AppendPolicy {
    const { trim, maxEntries, maxAgeMs, idempotencyWindowMs: windowMs } = this.#options;
    const once = values === undefined ? undefined : { digest: digestOf(values), windowMs };
    return { trim, maxEntries, maxAgeMs, once };
  }

  /** Runs a script that appends, and answers what it does: positions. */
  async #append(doing: string, keyed: boolean, key: string, send: Send<unknown>): Promise<unknown> {
    const running = this.#commands.run(key, send, { doing, repeatable: keyed });
    this.#appends.add(running);
    try {
      const reply = await running;
      if (Array.isArray(reply) && reply.length === 1) {
        throw new BrokerError(
          'IDEMPOTENCY_CONFLICT',
          `${doing}: the idempotency key was used for other values`,
        );
      }
      return reply;
    } finally {
      this.#appends.delete(running);
    }
  }

  /** Ends reads, waits for appends under way, then for the sockets to close. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const error = new BrokerError('CLOSED', 'the redis broker is closed');
    this.#closing.abort(error);
    const announced = this.announcer.close(error);
    await Promise.all([announced, this.#readers.close(error), Promise.allSettled(this.#appends)]);
    await this.#commands.close();
  }
}

function serversOf({ client, replyTimeoutMs }: ResolvedOptions, closing: AbortSignal): Servers {
  return isCluster(client)
    ? new ClusterServers(client, replyTimeoutMs, closing)
    : singleServer(client);
}

function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster;
}

function startArgs(from: Start, limit: number): (string | number)[] {
  if (typeof from === 'string') return [from, limit, PAGE_BYTES];
  // An id that Redis would not make is nowhere in the log.
  return ['at', limit, PAGE_BYTES, from.epoch, canonicalId(from.id) ?? NO_ID, from.ordinal];
}

function valuesOf(entries: readonly Entry[]): readonly string[] {
  return entries.map(({ value }) => value);
}

/** Tells values apart: JSON does, since it escapes what separates them. */
function digestOf(values: unknown): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url');
}

function apart(writes: readonly CheckedTopicAppend[]): BrokerError {
  const topics = writes.map(({ topic }) => describe(topic)).join(', ');
  return new BrokerError(
    'UNSUPPORTED',
    `a commit to ${topics} would span slots of the cluster: a {hash tag} in the prefix keeps all topics in one`,
  );
}
