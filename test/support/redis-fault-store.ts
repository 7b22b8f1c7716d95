import type { FaultStore } from '@brokerfeed/conformance';
import { type Broker, type Clock, systemClock } from '@brokerfeed/core';
import { type RedisBrokerOptions, redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';
import { type RedisServer, startRedis } from './redis.ts';

/** Short, so that what a deployment notices in seconds is noticed here at once. */
export const QUICK = { checkMs: 100, replyTimeoutMs: 300 } as const;

/** By default a primary waits for more replicas before it sends the first one anything. */
const REPLICABLE = { args: ['--repl-diskless-sync-delay', '0'] } as const;

/** A Redis of its own, and brokers that reach it over links of their own. */
export class RedisFaultStore implements FaultStore {
  readonly prefix: string = `faults-${crypto.randomUUID()}`;
  /** The primary now. */
  server: RedisServer;
  /** Commands that no fault of a link gets in the way of. */
  admin: Redis;
  /** The link of each instance, in the order in which they were opened. */
  readonly links: FaultProxy[] = [];
  readonly #rest: AsyncDisposable[] = [];
  #skewMs = 0;

  private constructor(server: RedisServer) {
    this.server = server;
    this.admin = this.#connect(server);
  }

  static async start(): Promise<RedisFaultStore> {
    return new RedisFaultStore(await startRedis(REPLICABLE));
  }

  async open(options: Partial<RedisBrokerOptions> = {}): Promise<Broker> {
    const link = await this.addLink();
    return this.#broker(link.port, { clock: this.#clock(), ...options });
  }

  /** Makes the link of one more instance, which opens a broker of its own. */
  async addLink(): Promise<FaultProxy> {
    const link = await startFaultProxy(this.server.port);
    this.links.push(link);
    return link;
  }

  /** Opens a broker that no fault of a link reaches. Closed with the store. */
  direct(options: Partial<RedisBrokerOptions> = {}): Broker {
    const broker = this.#broker(this.server.port, options);
    this.#rest.push(broker);
    return broker;
  }

  key(topic: string): string {
    return `${this.prefix}:${topic}`;
  }

  /** Does the same to the links of all instances. */
  eachLink(act: (link: FaultProxy) => void): void {
    for (const link of this.links) act(link);
  }

  /** Sets the clocks of all instances wrong. */
  skew(ms: number): void {
    this.#skewMs = ms;
  }

  /** Writes an append-only file from here on. Resolves when it holds everything. */
  async keepFile(): Promise<void> {
    await this.admin.config('SET', 'appendonly', 'yes', 'appendfsync', 'always');
    for (;;) {
      const info = await this.admin.info('persistence');
      if (/aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(info)) return;
    }
  }

  /** Starts a replica, behind a link of its own. Resolves when it has what the primary has. */
  async addReplica(): Promise<Replica> {
    const link = await startFaultProxy(this.server.port);
    const server = await startRedis(REPLICABLE);
    const admin = this.#connect(server);
    this.#rest.push(server, link, { [Symbol.asyncDispose]: async () => admin.disconnect() });
    await admin.replicaof('127.0.0.1', link.port);
    while (!/master_link_status:up/.test(await admin.info('replication')));
    return { server, admin, link };
  }

  /** Resolves when a replica has all that the primary has now. */
  async caughtUp({ admin }: Replica): Promise<void> {
    const offset = /master_repl_offset:(\d+)/.exec(await this.admin.info('replication'))?.[1];
    const behind = async (): Promise<boolean> => {
      const info = await admin.info('replication');
      return Number(/slave_repl_offset:(\d+)/.exec(info)?.[1]) < Number(offset);
    };
    while (await behind());
  }

  /** Makes another server the primary. Instances find it when they connect the next time. */
  moveTo(replica: Replica): void {
    const { server, admin } = this;
    this.#rest.push(server, { [Symbol.asyncDispose]: async () => admin.disconnect() });
    this.server = replica.server;
    this.admin = replica.admin;
    this.eachLink((link) => link.retarget(replica.server.port));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.admin.disconnect();
    for (const link of this.links) await link[Symbol.asyncDispose]();
    for (const each of this.#rest.reverse()) await each[Symbol.asyncDispose]();
    await this.server[Symbol.asyncDispose]();
  }

  #broker(port: number, options: Partial<RedisBrokerOptions>): Broker {
    const client = new Redis({ host: '127.0.0.1', port, lazyConnect: true });
    return redisBroker({ client, prefix: this.prefix, ...QUICK, ...options });
  }

  #clock(): Clock {
    return { now: () => systemClock.now() + this.#skewMs, after: systemClock.after };
  }

  #connect({ port }: RedisServer): Redis {
    const admin = new Redis({ port, lazyConnect: true, retryStrategy: () => 20 });
    // Servers are ended under it.
    admin.on('error', () => {});
    return admin;
  }
}

export interface Replica {
  readonly server: RedisServer;
  readonly admin: Redis;
  /** Between it and its primary. */
  readonly link: FaultProxy;
}
