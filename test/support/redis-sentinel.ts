/** A private primary with replicas and sentinels, for tests that lose the primary. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { findRedisBinary, freePort, type RedisServer, startRedis } from './redis.ts';

const NAME = 'main';
const REPLICAS = 2;
const SENTINELS = 3;
const QUORUM = 2;
/** Silence after which sentinels think the primary is gone. */
const DOWN_AFTER_MS = 1_000;
const FAILOVER_TIMEOUT_MS = 10_000;
const READY_TIMEOUT_MS = 30_000;
const LOOK_AGAIN_MS = 20;

export interface WatchedServer {
  readonly server: RedisServer;
  /** For the test's own commands. */
  readonly client: Redis;
}

/** Starts a primary, two replicas that follow it, and three sentinels that know of all the others. */
export async function startSentinels(): Promise<SentinelSet> {
  const set = new SentinelSet();
  try {
    await set.start();
    return set;
  } catch (error) {
    await set[Symbol.asyncDispose]();
    throw error;
  }
}

export class SentinelSet implements AsyncDisposable {
  /** The first primary, then its replicas. */
  readonly servers: WatchedServer[] = [];
  readonly #sentinels: Sentinel[] = [];
  readonly #clients: Redis[] = [];

  /** Makes a client that asks the sentinels for the primary, and is closed with them. It connects when it is used, if ever. */
  client(): Redis {
    const client = new Redis({
      sentinels: this.#sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
      name: NAME,
      lazyConnect: true,
    });
    client.on('error', () => {});
    this.#clients.push(client);
    return client;
  }

  /** Use `startSentinels`. */
  async start(): Promise<void> {
    for (let n = 0; n <= REPLICAS; n++) {
      const server = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
      const client = new Redis(server.port, '127.0.0.1');
      client.on('error', () => {});
      this.servers.push({ server, client });
    }
    const [primary, ...replicas] = this.servers;
    if (primary === undefined) throw new Error('there is no primary');
    for (const { client } of replicas) await client.replicaof('127.0.0.1', primary.server.port);
    for (const { client } of replicas) {
      await until(async () => (await client.info('replication')).includes('link_status:up'));
    }
    for (let n = 0; n < SENTINELS; n++) {
      this.#sentinels.push(await Sentinel.start(primary.server.port));
    }
    for (const { client } of this.#sentinels) {
      await until(async () => {
        const known = String(await client.call('INFO', 'sentinel'));
        return known.includes(`slaves=${REPLICAS},sentinels=${SENTINELS}`);
      });
    }
  }

  /** The primary that most sentinels agree on. */
  async primary(): Promise<WatchedServer | undefined> {
    const ports = await Promise.all(this.#sentinels.map((sentinel) => sentinel.primaryPort()));
    return this.servers.find(
      ({ server }) => ports.filter((port) => port === server.port).length >= QUORUM,
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients) client.disconnect();
    for (const { client } of this.servers) client.disconnect();
    await Promise.all([
      ...this.servers.map(({ server }) => server[Symbol.asyncDispose]()),
      ...this.#sentinels.map((sentinel) => sentinel[Symbol.asyncDispose]()),
    ]);
  }
}

class Sentinel implements AsyncDisposable {
  readonly port: number;
  readonly client: Redis;
  readonly #dir: string;
  readonly #process: ChildProcess;
  readonly #killAtExit = (): unknown => this.#process.kill('SIGKILL');

  /** Takes over `dir`, and deletes it when disposed. Use `Sentinel.start`. */
  constructor(port: number, dir: string, child: ChildProcess) {
    this.port = port;
    this.#dir = dir;
    this.#process = child;
    this.client = new Redis(port, '127.0.0.1', { enableReadyCheck: false });
    this.client.on('error', () => {});
    process.once('exit', this.#killAtExit);
  }

  static async start(primaryPort: number): Promise<Sentinel> {
    const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-sentinel-'));
    const port = await freePort();
    const file = join(dir, 'sentinel.conf');
    // Sentinels keep what they learn in their configuration.
    await writeFile(
      file,
      [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${dir}`,
        `sentinel monitor ${NAME} 127.0.0.1 ${primaryPort} ${QUORUM}`,
        `sentinel down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
        `sentinel failover-timeout ${NAME} ${FAILOVER_TIMEOUT_MS}`,
        `sentinel parallel-syncs ${NAME} ${REPLICAS}`,
        '',
      ].join('\n'),
    );
    const child = spawn(await findRedisBinary(), [file, '--sentinel'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const lines = createInterface({ input: child.stdout });
    const log: string[] = [];
    for await (const line of lines) {
      log.push(line);
      if (line.includes('+monitor')) {
        child.stdout.resume();
        return new Sentinel(port, dir, child);
      }
    }
    throw new Error(`a sentinel ended before it was ready:\n${log.join('\n')}`);
  }

  async primaryPort(): Promise<number> {
    // Typed unknown by ioredis: host and port.
    const address = await this.client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', NAME);
    return Number((address as [string, string])[1]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.disconnect();
    const exited = once(this.#process, 'exit');
    if (this.#process.exitCode === null && this.#process.kill('SIGKILL')) await exited;
    process.off('exit', this.#killAtExit);
    await rm(this.#dir, { recursive: true, force: true });
  }
}

async function until(ask: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  while (!(await ask())) {
    if (Date.now() > deadline) throw new Error(`the servers are never so: ${ask}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS));
  }
}
