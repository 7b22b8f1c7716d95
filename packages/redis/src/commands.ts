import { delay } from '@brokerfeed/core';
import type { Redis } from 'ioredis';
import { type Connection, connect } from './connection.ts';
import type { ResolvedOptions } from './options.ts';
import { outcomeOf, toBrokerError } from './redis-error.ts';
import type { Script } from './script.ts';

export interface RunOptions {
  /** For errors: what is being done, such as `an append to topic "orders"`. */
  readonly doing: string;
  /** Whether it may be executed twice: whether a command whose reply was lost is sent again. */
  readonly repeatable: boolean;
  /** Stops trying; it does not take back what was sent. */
  readonly signal?: AbortSignal | undefined;
}

const FIRST_RETRY_MS = 25;
const LONGEST_RETRY_MS = 1_000;

/** The connection that commands share: opened by the first one, made anew when it breaks or is no longer the primary's. */
export class Commands {
  readonly #options: ResolvedOptions;
  readonly #scripts: readonly Script[];
  readonly #closing: AbortSignal;
  readonly #onOpen: (connection: Connection) => void;
  #connection: Promise<Connection> | undefined;
  /** Connections that end by themselves, once what was sent on them is answered. */
  readonly #retired = new Set<Promise<unknown>>();

  /** `closing` ends every try with its reason; `onOpen` sees each new connection and must not throw. */
  constructor(
    options: ResolvedOptions,
    scripts: readonly Script[],
    closing: AbortSignal,
    onOpen: (connection: Connection) => void,
  ) {
    this.#options = options;
    this.#scripts = scripts;
    this.#closing = closing;
    this.#onOpen = onOpen;
  }

  /**
   * Sends a command, and sends it again within `retryMs` where that is safe: it was not sent, not executed, or may be
   * executed twice. Commands are sent in the order of the calls as long as none must be sent again.
   */
  async run<T>(
    send: (redis: Redis, serverId: string | undefined) => Promise<T>,
    options: RunOptions,
  ): Promise<T> {
    const { clock, retryMs } = this.#options;
    const deadline = clock.now() + retryMs;
    for (let wait = FIRST_RETRY_MS; ; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
      this.#closing.throwIfAborted();
      let connection: Connection | undefined;
      try {
        connection = await this.#open();
        return await send(connection.redis, connection.serverId);
      } catch (error) {
        this.#closing.throwIfAborted();
        const outcome = outcomeOf(error);
        if (outcome === 'moved' && connection !== undefined) this.#retire(connection);
        const unsent = connection === undefined;
        const again = outcome === 'lost' ? unsent || options.repeatable : outcome !== 'refused';
        if (!again || clock.now() + wait > deadline) throw toBrokerError(error, options.doing);
        await delay(clock, wait, this.#closing);
        if (options.signal?.aborted) throw toBrokerError(error, options.doing);
      }
    }
  }

  /** Ends the connection. Call it when `closing` has aborted and what must be answered is. */
  async close(): Promise<void> {
    const connection = await this.#connection?.catch(() => undefined);
    await Promise.all([connection?.close(), ...this.#retired]);
  }

  #open(): Promise<Connection> {
    if (this.#connection !== undefined) return this.#connection;
    const opening = this.#connect();
    this.#connection = opening;
    const forget = (): void => {
      if (this.#connection === opening) this.#connection = undefined;
    };
    opening.then(({ redis }) => {
      if (redis.status === 'end') forget();
      else redis.once('end', forget);
    }, forget);
    return opening;
  }

  async #connect(): Promise<Connection> {
    const connection = await connect(this.#options.client, {
      name: 'brokerfeed',
      silenceMs: this.#options.replyTimeoutMs,
      signal: this.#closing,
    });
    try {
      // Ahead of the first call: replies that ask for the text would let later calls overtake earlier ones.
      await Promise.all(this.#scripts.map((script) => script.load(connection.redis)));
    } catch (error) {
      await connection.close();
      throw error;
    }
    this.#onOpen(connection);
    return connection;
  }

  /** Lets the next command find the primary, without taking their replies from those under way. */
  #retire(connection: Connection): void {
    if (connection.redis.status !== 'ready') return;
    this.#connection = undefined;
    const end = connection.redis.quit().then(
      () => connection.close(),
      () => connection.close(),
    );
    this.#retired.add(end);
    void end.finally(() => this.#retired.delete(end));
  }
}
