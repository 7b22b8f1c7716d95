import { setTimeout as sleep } from 'node:timers/promises';
import type { Load } from '../load/main.ts';
import { Child } from './child.ts';
import type { LoadApi } from './load-api.ts';
import { startMeter, type Usage } from './meter.ts';
import type { RedisServer } from './redis-server.ts';
import type { ServerApi } from './server-api.ts';
import type { SystemOptions } from './system.ts';

export interface PairOptions {
  readonly redis: RedisServer;
  readonly system: string;
  readonly options: SystemOptions;
  readonly load: Load;
  /** Where the server's CPU profile goes. */
  readonly profileDir?: string | undefined;
}

/** Bytecode that is thrown away and made again would look like memory of subscribers. */
const SERVER_FLAGS = ['--expose-gc', '--no-flush-bytecode'];
const SERVER = new URL('../peers/server.mjs', import.meta.url);
const LOAD = new URL('../load/main.ts', import.meta.url);

/** A server and its load client, each a process of its own, on an empty Redis. */
export class Pair implements AsyncDisposable {
  readonly system: string;
  readonly redis: RedisServer;
  readonly server: Child<ServerApi>;
  readonly load: Child<LoadApi>;
  /** Connections to Redis of the server alone, before anybody subscribed. */
  readonly firstConnections: number;

  static async open({ redis, system, options, load, profileDir }: PairOptions): Promise<Pair> {
    await redis.flush();
    const { child: server, ready: url } = await Child.start<ServerApi>(SERVER, {
      args: [system, redis.url, JSON.stringify(options)],
      execArgv: [...SERVER_FLAGS, ...profileFlags(profileDir, system)],
    });
    // It connects when it is ready, or later.
    await sleep(300);
    const connections = await redis.connections();
    const { child: client } = await Child.start<LoadApi>(LOAD, {
      args: [system, redis.url, String(url), JSON.stringify(load)],
      execArgv: ['--import', import.meta.resolve('tsx')],
    });
    return new Pair(system, redis, server, client, connections);
  }

  constructor(
    system: string,
    redis: RedisServer,
    server: Child<ServerApi>,
    load: Child<LoadApi>,
    firstConnections: number,
  ) {
    this.system = system;
    this.redis = redis;
    this.server = server;
    this.load = load;
    this.firstConnections = firstConnections;
  }

  /** Starts to measure what all processes use. The function that is answered ends it. */
  startMeter(): Promise<() => Promise<Usage>> {
    return startMeter({ server: this.server.pid, load: this.load, redis: this.redis.pid });
  }

  /** Measures for so long. */
  async measure(ms: number): Promise<Usage> {
    const stop = await this.startMeter();
    await sleep(ms);
    return stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.stop();
    await this.server.stop();
  }
}

function profileFlags(dir: string | undefined, system: string): string[] {
  if (dir === undefined) return [];
  const name = `${system}-${Date.now()}.cpuprofile`;
  return ['--cpu-prof', `--cpu-prof-dir=${dir}`, `--cpu-prof-name=${name}`];
}
