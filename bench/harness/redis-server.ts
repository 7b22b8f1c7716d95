import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';

/** A Redis of the bench's own: it is flushed between runs, so it is never one that somebody uses. */
export class RedisServer implements AsyncDisposable {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #admin: Redis;

  /** Starts `redis-server` from the PATH, or the program that `REDIS_SERVER` names, without persistence. */
  static async start(): Promise<RedisServer> {
    const port = await freePort();
    const program = process.env.REDIS_SERVER ?? 'redis-server';
    const args = [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
    ];
    const child = spawn(program, args, { stdio: 'ignore' });
    const failed = once(child, 'exit').then(() => {
      throw new Error(`${program} ended: is it on the PATH?`);
    });
    // Whatever ends the bench ends it too.
    process.once('exit', () => child.kill());
    const redis = new RedisServer(child, port);
    await Promise.race([redis.#admin.ping(), failed]);
    failed.catch(() => {});
    return redis;
  }

  constructor(child: ChildProcess, port: number) {
    this.#process = child;
    this.url = `redis://127.0.0.1:${port}`;
    this.#admin = new Redis(this.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
    // Until it listens, every try fails.
    this.#admin.on('error', () => {});
  }

  get pid(): number {
    return this.#process.pid as number;
  }

  async flush(): Promise<void> {
    await this.#admin.flushall();
    await this.#admin.config('RESETSTAT');
  }

  /** Connections of others than the bench itself. */
  async connections(): Promise<number> {
    const list = String(await this.#admin.client('LIST'));
    return list.trim().split('\n').length - 1;
  }

  /** Commands executed since {@link flush}, those of scripts included. */
  async commands(): Promise<number> {
    let calls = 0;
    const stats = await this.#admin.info('commandstats');
    for (const [, name = '', count] of stats.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)) {
      if (!OWN_COMMANDS.has(name)) calls += Number(count);
    }
    return calls;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#admin.disconnect();
    const exited = once(this.#process, 'exit');
    this.#process.kill();
    await Promise.race([exited, sleep(2_000)]);
  }
}

/** What the bench itself asks. */
const OWN_COMMANDS: ReadonlySet<string> = new Set([
  'info',
  'config|resetstat',
  'client|list',
  'flushall',
  'ping',
]);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port was assigned');
  return address.port;
}
