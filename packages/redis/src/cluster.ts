import { BrokerError } from '@brokerfeed/core';
import type { Cluster, Redis } from 'ioredis';
import { type Connection, type ConnectOptions, connect } from './connection.ts';
import { keySlot, SLOTS } from './key-slot.ts';
import { isReplyError } from './redis-error.ts';
import type { Server, Servers } from './servers.ts';
import { type Address, readRedirection, readSlots, type SlotsReply } from './slot-map.ts';
import { until } from './until.ts';

/** What waits for a node to say which slots are where waits no longer: there are others to ask. */
const LONGEST_SILENCE_MS = 1_000;
/** Errors after which a server may hold other slots than before, or none. */
const DOUBTS = /^(CLUSTERDOWN|READONLY|LOADING|MASTERDOWN)\b/;

/** An address as ioredis' options have it. */
interface Place {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
}

interface Node extends Server {
  readonly address: Address;
}

/**
 * The primaries of a cluster. Which of them holds what is asked of any node, on a connection of our own, when it is needed
 * first and when a primary breaks or doubts itself; what else changes, primaries say themselves when they are asked for
 * what they do not hold.
 */
export class ClusterServers implements Servers {
  readonly spread = true;
  readonly #client: Cluster;
  readonly #silenceMs: number;
  readonly #closing: AbortSignal;
  readonly #nodes = new Map<string, Node>();
  readonly #holders: (Node | undefined)[] = new Array(SLOTS);
  /** Primaries that are not believed in until a node has said again what they hold. */
  readonly #doubted = new Set<Server>();
  #asking: Promise<void> | undefined;
  /** Where ioredis would start. Not connected: what is wanted of them is how they would be. */
  #doors: readonly Redis[] = [];

  /** `closing` ends whatever is under way. */
  constructor(client: Cluster, replyTimeoutMs: number, closing: AbortSignal) {
    this.#client = client;
    this.#silenceMs = Math.min(replyTimeoutMs, LONGEST_SILENCE_MS);
    this.#closing = closing;
  }

  async serverOf(key: string): Promise<Server> {
    const slot = keySlot(key);
    const known = this.#holders[slot];
    if (known !== undefined && !this.#doubted.has(known)) return known;
    await this.#ask();
    const holder = this.#holders[slot];
    if (holder === undefined) {
      throw new BrokerError('UNAVAILABLE', `no server of the cluster holds slot ${slot}`);
    }
    return holder;
  }

  together(keys: readonly string[]): readonly (readonly string[])[] {
    const groups = new Map<number, string[]>();
    for (const key of keys) {
      const slot = keySlot(key);
      const group = groups.get(slot);
      if (group === undefined) groups.set(slot, [key]);
      else group.push(key);
    }
    return [...groups.values()];
  }

  heard(error: unknown, server: Server): Server | undefined {
    if (!isReplyError(error) || DOUBTS.test(error.message)) {
      this.#doubted.add(server);
      return undefined;
    }
    // Every server that we give is a node.
    const redirection = readRedirection(error.message, (server as Node).address);
    if (redirection === undefined) return undefined;
    const node = this.#node(this.#reachable(redirection.address));
    if (redirection.kind === 'ASK') return node;
    this.#holders[redirection.slot] = node;
    return undefined;
  }

  /** Asks which slots are where, once for all who need to know. */
  #ask(): Promise<void> {
    this.#asking ??= this.#askNodes().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async #askNodes(): Promise<void> {
    let cause: unknown;
    const ask = async (nodes: readonly Node[]): Promise<boolean> => {
      for (const node of nodes) {
        try {
          await this.#askNode(node);
          return true;
        } catch (error) {
          this.#closing.throwIfAborted();
          cause = error;
        }
      }
      return false;
    };
    if ((await ask(this.#knownNodes())) || (await ask(await this.#enter()))) return;
    throw new BrokerError(
      'UNAVAILABLE',
      `no node of the cluster says what is where: ${whyOf(cause)}`,
      { cause },
    );
  }

  async #askNode(node: Node): Promise<void> {
    const connection = await node.connect({
      name: 'brokerfeed-slots',
      silenceMs: this.#silenceMs,
      signal: this.#closing,
      role: 'any',
    });
    try {
      // Typed loosely by ioredis.
      const reply = (await connection.redis.cluster('SLOTS')) as unknown as SlotsReply;
      const ranges = readSlots(reply, node.address);
      if (ranges.length === 0) throw new Error(`${node.name} knows of no slots`);
      this.#holders.fill(undefined);
      for (const { from, to, primary } of ranges) {
        this.#holders.fill(this.#node(this.#reachable(primary)), from, to + 1);
      }
      this.#doubted.clear();
    } finally {
      await connection.close();
    }
  }

  /** Those that hold slots, in a random order, those in doubt last. */
  #knownNodes(): Node[] {
    const nodes = shuffled([...new Set(this.#holders)].filter((node) => node !== undefined));
    return [
      ...nodes.filter((node) => !this.#doubted.has(node)),
      ...nodes.filter((node) => this.#doubted.has(node)),
    ];
  }

  /**
   * Finds where the user's client would start: ioredis resolves the names for us, on a client of ours that goes no further.
   */
  async #enter(): Promise<Node[]> {
    const guide = this.#client.duplicate([], {
      lazyConnect: true,
      clusterRetryStrategy: null,
      // It may get as far as to connect before it is stopped.
      redisOptions: { disableClientInfo: true },
    });
    guide.on('error', () => {});
    const doors: Redis[] = [];
    const found = new Promise<void>((resolve) => {
      guide.on('+node', (door) => {
        doors.push(door);
        resolve();
      });
    });
    try {
      await until(Promise.race([found, guide.connect()]), this.#closing);
    } catch (cause) {
      this.#closing.throwIfAborted();
      throw new BrokerError('UNAVAILABLE', `cannot find a node of the cluster: ${whyOf(cause)}`, {
        cause,
      });
    } finally {
      guide.disconnect();
    }
    this.#doors = doors;
    return doors.map(({ options }) => this.#node(options));
  }

  /** One object for each address, so that what is shared by server can be. */
  #node({ host = '127.0.0.1', port = 6379 }: Place): Node {
    const name = `${host}:${port}`;
    let node = this.#nodes.get(name);
    if (node === undefined) {
      const address = { host, port };
      node = { name, address, connect: (options) => this.#connect(address, options) };
      this.#nodes.set(name, node);
    }
    return node;
  }

  async #connect(address: Address, options: ConnectOptions): Promise<Connection> {
    const same = this.#doors.find(
      ({ options: { host, port } }) => host === address.host && port === address.port,
    );
    const model = same ?? this.#doors[0];
    if (model === undefined)
      throw new BrokerError('UNAVAILABLE', 'no node of the cluster is known');
    return connect(model, options, address);
  }

  /** The address at which a node is reached from here, which its own may not be. */
  #reachable(address: Address): Address {
    const { natMap } = this.#client.options;
    const name = `${address.host}:${address.port}`;
    return (typeof natMap === 'function' ? natMap(name) : natMap?.[name]) ?? address;
  }
}

function shuffled<T>(list: readonly T[]): T[] {
  return list
    .map((element) => ({ element, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ element }) => element);
}

function whyOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
