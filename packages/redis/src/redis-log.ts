import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import {
  type AppendOptions,
  type Bounds,
  BrokerError,
  type BrokerLog,
  checkAppend,
  checkTopic,
  describe,
  type Loss,
  newEpoch,
  type Observer,
  type Page,
  type Position,
  type Sink,
  type Start,
} from '@brokerfeed/core';
import { APPEND_SCRIPT } from './append-script.ts';
import { Commands } from './commands.ts';
import { headersText, valueFields } from './commit-codec.ts';
import { EvictionWarning } from './eviction-warning.ts';
import { follow } from './follow.ts';
import { LiveReaders } from './live-readers.ts';
import type { ResolvedOptions } from './options.ts';
import { type PageReply, readPage } from './page-reply.ts';
import { PAGE_SCRIPT } from './page-script.ts';
import { Script } from './script.ts';
import { canonicalId, NO_ID } from './stream-id.ts';
import { TIPS } from './tips-script.ts';
import { until } from './until.ts';

/** What the append script answers. */
type AppendReply = readonly ['conflict'] | readonly [epoch: string, id: string, ordinal: number];

/** Bytes after which a page ends, whatever its limit; between commits, and not before the first. */
const PAGE_BYTES = 1024 * 1024;

const APPEND = new Script(APPEND_SCRIPT);
const PAGE = new Script(PAGE_SCRIPT);

/** Topics as Redis streams. */
export class RedisLog implements BrokerLog {
  readonly observer: Observer;
  readonly #options: ResolvedOptions;
  readonly #commands: Commands;
  readonly #readers: LiveReaders;
  readonly #closing = new AbortController();
  readonly #appends = new Set<Promise<unknown>>();
  #closed: Promise<void> | undefined;

  constructor(options: ResolvedOptions) {
    this.observer = options.observer;
    this.#options = options;
    // As many listeners as there are reads under way.
    setMaxListeners(0, this.#closing.signal);
    const warning = new EvictionWarning(options.observer.logger);
    this.#commands = new Commands(
      options,
      [APPEND, PAGE, TIPS],
      this.#closing.signal,
      ({ redis }) => warning.check(redis),
    );
    this.#readers = new LiveReaders(options, this.#commands);
  }

  async append(
    topic: string,
    value: string | readonly string[],
    options: AppendOptions = {},
  ): Promise<Position> {
    this.#closing.signal.throwIfAborted();
    const write = checkAppend(topic, value, options, this.#options.maxEntryBytes);
    const { keys, trim, maxEntries, maxAgeMs, idempotencyWindowMs } = this.#options;
    const key = keys.topic(topic);
    const { idempotencyKey } = write;
    const once = idempotencyKey === undefined ? [] : [keys.once(key, idempotencyKey)];
    const digest =
      idempotencyKey === undefined ? '' : digestOf(write.entries.map((entry) => entry.value));
    const policy = [trim, maxEntries, maxAgeMs, digest, idempotencyWindowMs];
    const args = [newEpoch(), ...policy, headersText(write), ...valueFields(write)];
    const running = this.#commands.run((redis) => APPEND.call(redis, [key, ...once], args), {
      doing: `an append to topic ${describe(topic)}`,
      repeatable: idempotencyKey !== undefined,
    });
    this.#appends.add(running);
    try {
      // Typed unknown by ioredis: what the script returns.
      const reply = (await running) as AppendReply;
      if (reply.length === 1) {
        throw new BrokerError(
          'IDEMPOTENCY_CONFLICT',
          `the idempotency key ${describe(idempotencyKey)} was used for other values of topic ${describe(topic)}`,
        );
      }
      const [epoch, id, ordinal] = reply;
      return { epoch, id, ordinal };
    } finally {
      this.#appends.delete(running);
    }
  }

  async page(topic: string, from: Start, limit: number, signal?: AbortSignal): Promise<Page> {
    this.#closing.signal.throwIfAborted();
    checkTopic(topic);
    signal?.throwIfAborted();
    const args = [newEpoch(), ...startArgs(from, limit)];
    const running = this.#commands.run(
      (redis) => PAGE.call(redis, [this.#options.keys.topic(topic)], args),
      {
        doing: `a read of topic ${describe(topic)}`,
        repeatable: true,
        signal,
      },
    );
    // Typed unknown by ioredis: what the script returns.
    return readPage((await until(running, this.#closing.signal, signal)) as PageReply);
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
        watch: (at, events) => {
          this.#closing.signal.throwIfAborted();
          return this.#readers.watch(key, at, events);
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

  /** Ends reads, waits for appends under way, then for the sockets to close. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const error = new BrokerError('CLOSED', 'the redis broker is closed');
    this.#closing.abort(error);
    await Promise.all([this.#readers.close(error), Promise.allSettled(this.#appends)]);
    await this.#commands.close();
  }
}

function startArgs(from: Start, limit: number): (string | number)[] {
  if (typeof from === 'string') return [from, limit, PAGE_BYTES];
  // An id that Redis would not make is nowhere in the log.
  return ['at', limit, PAGE_BYTES, from.epoch, canonicalId(from.id) ?? NO_ID, from.ordinal];
}

/** Tells lists of values apart: JSON does, since it escapes what separates them. */
function digestOf(values: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url');
}
