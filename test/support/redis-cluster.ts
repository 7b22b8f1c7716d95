/** Private Redis clusters, for tests that move slots and lose primaries. */
import { Cluster, Redis } from 'ioredis';
import { freePort, type RedisServer, startRedis } from './redis.ts';

export interface StartClusterOptions {
  /** Primaries, which share the slots evenly. @default 3 */
  readonly primaries?: number;
  /** Replicas of the first primary. @default 0 */
  readonly replicas?: number;
  /** Silence after which a node is thought to be gone, in milliseconds. Short ones make loaded machines fail over. @default 2_000 */
  readonly nodeTimeoutMs?: number;
  /** Added to the command line of each node. */
  readonly args?: readonly string[];
}

/** ioredis' ClusterOptions, as its constructor takes them. */
export type ClientOptions = NonNullable<ConstructorParameters<typeof Cluster>[1]>;

const SLOTS = 16384;
const READY_TIMEOUT_MS = 30_000;
const LOOK_AGAIN_MS = 20;

/** Starts nodes and joins them. Resolves when all of them agree that all slots are served. */
export async function startCluster(options: StartClusterOptions = {}): Promise<RedisCluster> {
  const { primaries = 3, replicas = 0, nodeTimeoutMs = 2_000, args = [] } = options;
  const nodes: ClusterNode[] = [];
  const cluster = new RedisCluster(nodes, primaries);
  try {
    const starting = Array.from({ length: primaries + replicas }, async () => {
      const busPort = await freePort();
      const server = await startRedis({
        args: [
          ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
          ...['--cluster-node-timeout', String(nodeTimeoutMs)],
          // A replica that was cut off for a moment may still take over, and does so without waiting.
          ...['--cluster-replica-validity-factor', '0', '--repl-diskless-sync-delay', '0'],
          ...args,
        ],
      });
      const client = new Redis(server.port, '127.0.0.1');
      // Tests end servers under it.
      client.on('error', () => {});
      const id = String(await client.cluster('MYID'));
      return { server, client, id, busPort };
    });
    for (const start of await Promise.allSettled(starting)) {
      if (start.status === 'fulfilled') nodes.push(start.value);
      else throw start.reason;
    }
    await cluster.join();
    return cluster;
  } catch (error) {
    await cluster[Symbol.asyncDispose]();
    throw error;
  }
}

export interface ClusterNode {
  readonly server: RedisServer;
  /** For the test's own commands. */
  readonly client: Redis;
  readonly id: string;
  readonly busPort: number;
}

export class RedisCluster implements AsyncDisposable {
  /** The primaries in the order of their slots, then the replicas. */
  readonly nodes: readonly ClusterNode[];
  readonly #primaries: number;
  readonly #clients: Cluster[] = [];

  /** Use `startCluster`. */
  constructor(nodes: readonly ClusterNode[], primaries: number) {
    this.nodes = nodes;
    this.#primaries = primaries;
  }

  /**
   * Makes a client that starts at ports of the nodes, and is closed with the cluster. It connects when it is used, if ever.
   */
  client(options: ClientOptions = {}, ports?: readonly number[]): Cluster {
    const starts = ports ?? this.nodes.map(({ server }) => server.port);
    const client = new Cluster(
      starts.map((port) => ({ host: '127.0.0.1', port })),
      { lazyConnect: true, ...options },
    );
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }

  /** Makes one cluster of the nodes. */
  async join(): Promise<void> {
    const primaries = this.nodes.slice(0, this.#primaries);
    const replicas = this.nodes.slice(this.#primaries);
    const [first] = primaries;
    if (first === undefined) throw new Error('a cluster needs a primary');
    await Promise.all(
      primaries.map(async ({ client }, index) => {
        const from = Math.ceil((index * SLOTS) / primaries.length);
        const to = Math.ceil(((index + 1) * SLOTS) / primaries.length) - 1;
        await client.cluster('ADDSLOTSRANGE', from, to);
        await client.cluster('SET-CONFIG-EPOCH', index + 1);
      }),
    );
    for (const { client } of this.nodes.slice(1)) {
      await client.call('CLUSTER', 'MEET', '127.0.0.1', first.server.port, first.busPort);
    }
    await this.#until(async ({ client }) =>
      String(await client.cluster('INFO')).includes(`cluster_known_nodes:${this.nodes.length}`),
    );
    for (const { client } of replicas) {
      await until(async () => String(await client.cluster('NODES')).includes(first.id));
      await client.cluster('REPLICATE', first.id);
      await until(async () => (await client.info('replication')).includes('master_link_status:up'));
    }
    await this.#until(async ({ client }) => {
      const serves = String(await client.cluster('INFO')).includes('cluster_state:ok');
      return serves && (await client.cluster('SLOTS')).length === primaries.length;
    });
  }

  /** The primary that serves a slot, as another node says. */
  async primaryOf(slot: number, asked: ClusterNode): Promise<ClusterNode | undefined> {
    // Typed loosely by ioredis.
    const ranges = (await asked.client.cluster('SLOTS')) as unknown as [
      number,
      number,
      [string, number, string],
    ][];
    const [, , primary] = ranges.find(([from, to]) => slot >= from && slot <= to) ?? [];
    return this.nodes.find(({ id }) => id === primary?.[2]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    for (const { client } of this.nodes) client.disconnect();
    await Promise.all(this.nodes.map(({ server }) => server[Symbol.asyncDispose]()));
  }

  async #until(ask: (node: ClusterNode) => Promise<boolean>): Promise<void> {
    await Promise.all(this.nodes.map((node) => until(() => ask(node))));
  }
}

/** A slot on its way from one primary to another: in three steps, so that tests can look in between. */
export class SlotMove {
  readonly #slot: number;
  readonly #from: ClusterNode;
  readonly #to: ClusterNode;

  constructor(slot: number, from: ClusterNode, to: ClusterNode) {
    this.#slot = slot;
    this.#from = from;
    this.#to = to;
  }

  /** From here on the new primary takes what the old one does not have. */
  async begin(): Promise<void> {
    await this.#to.client.cluster('SETSLOT', this.#slot, 'IMPORTING', this.#from.id);
    await this.#from.client.cluster('SETSLOT', this.#slot, 'MIGRATING', this.#to.id);
  }

  /** Moves what is in the slot now. */
  async moveKeys(): Promise<void> {
    const keys = await this.#from.client.cluster('GETKEYSINSLOT', this.#slot, 1_000);
    if (keys.length === 0) return;
    const { port } = this.#to.server;
    await this.#from.client.call('MIGRATE', '127.0.0.1', port, '', 0, 5_000, 'KEYS', ...keys);
  }

  async finish(): Promise<void> {
    await this.#to.client.cluster('SETSLOT', this.#slot, 'NODE', this.#to.id);
    await this.#from.client.cluster('SETSLOT', this.#slot, 'NODE', this.#to.id);
  }
}

async function until(ask: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await ask())) {
    if (Date.now() > deadline) throw new Error(`the cluster is never so: ${ask}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
