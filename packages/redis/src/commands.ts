import { BrokerError, delay } from '@brokerfeed/core';
import type { Redis } from 'ioredis';
import type { Connection } from './connection.ts';
import { elapsed } from './elapsed.ts';
import type { ResolvedOptions } from './options.ts';
import { type Outcome, outcomeOf, toBrokerError } from './redis-error.ts';
import type { Script } from './script.ts';
import type { Server, Servers } from './servers.ts';

/** Sends commands, all of them before it returns. */
export type Send<T> = (redis: Redis, serverId: string | undefined) => Promise<T>;

export interface RunOptions {
  /** For errors: what is being done, such as `an append to topic "orders"`. */
  readonly doing: string;
  /**
   * Whether it may be executed twice: whether a command whose reply was lost is sent again. `never`: nor is one that was not
   * executed, since others may have been sent meanwhile.
   */
  readonly repeatable: boolean | 'never';
  /** Stops trying; it does not take back what was sent. */
  readonly signal?: AbortSignal | undefined;
}

const FIRST_RETRY_MS = 25;
const LONGEST_RETRY_MS = 1_000;
/** Redirections that are followed at once. More of them: servers that do not agree yet. */
const PROMPT_REDIRECTIONS = 2;

/**
 * The connections that commands share, one to each server: opened by the first command, made anew when it breaks or is no
 * longer the primary's.
 */
export class Commands {
  readonly #options: ResolvedOptions;
  readonly #servers: Servers;
  readonly #scripts: readonly Script[];
  readonly #closing: AbortSignal;
  readonly #onOpen: (connection: Connection) => void;
  readonly #connections = new Map<Server, Promise<Connection>>();
  /** Connections that end by themselves, once what was sent on them is answered. */
  readonly #retired = new Set<Promise<unknown>>();

  /** `closing` ends every try with its reason; `onOpen` sees each new connection and must not throw. */
  constructor(
    options: ResolvedOptions,
    servers: Servers,
    scripts: readonly Script[],
    closing: AbortSignal,
    onOpen: (connection: Connection) => void,
  ) {
    this.#options = options;
    this.#servers = servers;
    this.#scripts = scripts;
    this.#closing = closing;
    this.#onOpen = onOpen;
  }

  /**
   * Sends a command to the server that holds a key, and sends it again within `retryMs` where that is safe: it was not
   * sent, not executed, or may be executed twice. Commands for one key are sent in the order of the calls as long as none
   * must be sent again.
   */
  async run<T>(key: string, send: Send<T>, options: RunOptions): Promise<T> {
    const { clock, retryMs } = this.#options;
    const startedAt = clock.now();
    let redirections = 0;
    let redirected: Server | undefined;
    for (let wait = FIRST_RETRY_MS; ; ) {
      this.#closing.throwIfAborted();
      let server: Server | undefined;
      let connection: Connection | undefined;
      try {
        const known = redirected;
        server = known ?? (await this.#servers.serverOf(key));
        connection = await this.#open(server);
        return await (known === undefined ? send : asking(send))(
          connection.redis,
          connection.serverId,
        );
      } catch (error) {
        this.#closing.throwIfAborted();
        const outcome = outcomeOf(error);
        redirected = server && this.#servers.heard(error, server);
        if (outcome === 'moved' && server && connection) this.#retire(server, connection);
        if (outcome === 'redirected' && !this.#servers.spread)
          throw noCluster(error, options.doing);
        if (!mayRetry(outcome, connection, options)) throw toBrokerError(error, options.doing);
        if (outcome === 'redirected' && redirections++ < PROMPT_REDIRECTIONS) continue;
        if (elapsed(clock, startedAt) + wait > retryMs) throw toBrokerError(error, options.doing);
        await delay(clock, wait, this.#closing);
        if (options.signal?.aborted) throw toBrokerError(error, options.doing);
        wait = Math.min(wait * 2, LONGEST_RETRY_MS);
      }
    }
  }

  /** Ends the connections. Call it when `closing` has aborted and what must be answered is. */
  async close(): Promise<void> {
    const ends = [...this.#connections.values()].map((opening) =>
      opening.then(
        (connection) => connection.close(),
        () => {},
      ),
    );
    await Promise.all([...ends, ...this.#retired]);
  }

  #open(server: Server): Promise<Connection> {
    const open = this.#connections.get(server);
    if (open !== undefined) return open;
    const opening = this.#connect(server);
    this.#connections.set(server, opening);
    const forget = (): void => {
      if (this.#connections.get(server) === opening) this.#connections.delete(server);
    };
    opening.then(({ redis }) => {
      if (redis.status === 'end') forget();
      else redis.once('end', forget);
    }, forget);
    return opening;
  }

  async #connect(server: Server): Promise<Connection> {
    const connection = await server.connect({
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
  #retire(server: Server, connection: Connection): void {
    if (connection.redis.status !== 'ready') return;
    this.#connections.delete(server);
    // Answered after all that was sent before.
    const end = connection.redis.ping().then(
      () => connection.close(),
      () => connection.close(),
    );
    this.#retired.add(end);
    void end.finally(() => this.#retired.delete(end));
  }
}

function mayRetry(
  outcome: Outcome,
  connection: Connection | undefined,
  options: RunOptions,
): boolean {
  if (options.repeatable === 'never') return false;
  if (outcome === 'lost') return connection === undefined || options.repeatable;
  return outcome !== 'refused';
}

function noCluster(error: unknown, doing: string): BrokerError {
  const message = `${doing} came to one node of a cluster: that takes a Cluster for the client`;
  return new BrokerError('UNSUPPORTED', message, { cause: error });
}

/** Makes a server take a command for a slot that is being moved to it: ASKING lets the next one pass. */
function asking<T>(send: Send<T>): Send<T> {
  return (redis, serverId) => {
    const allowed = redis.asking();
    // Its error is that of the connection too, or the command's own says more.
    allowed.catch(() => {});
    return send(redis, serverId);
  };
}
