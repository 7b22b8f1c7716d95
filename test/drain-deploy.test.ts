import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, inject, test, vi } from 'vitest';
import { forgetTopics } from '../examples/orders/broker.ts';
import { Cluster } from '../examples/orders/cluster.ts';
import { freePort } from '../examples/orders/free-port.ts';
import { startProxy } from '../examples/orders/proxy.ts';
import type { OrdersRouter } from '../examples/orders/router.ts';
import { connect, type TestClient, type Transport } from './support/client.ts';
import { SOAK } from './support/soak.ts';

/** Processes that compile their sources first share two cores with other tests. */
vi.setConfig({ testTimeout: 180_000 });

/** A thousand where there is time for them: they are stock clients, and all in this process. */
const SCALE = SOAK > 1 ? 5 : 1;
const CLIENTS = { ws: 160 * SCALE, sse: 40 * SCALE } as const;
/** The time over which each instance moves its clients, and what it would take to close one that does not go. */
const DRAIN_MS = 1_000;
const GRACE_MS = 60_000;
const APPEND_EVERY_MS = 200;

/** A client that checks the numbers of the orders it gets, and keeps none. */
class Follower {
  readonly #client: TestClient<OrdersRouter>;
  readonly #stop: () => void;
  next = 0;
  attached = 0;
  /** Times that it noticed that its connection was gone. */
  lost = 0;
  repeated = 0;
  missed = 0;
  error: unknown;
  completed = false;

  constructor(urls: { httpUrl: string; wsUrl: string }, transport: Transport) {
    this.#client = connect<OrdersRouter>(urls, transport);
    const subscription = this.#client.trpc.orders.feed.subscribe(undefined, {
      onData: ({ data }) => {
        if ('feed' in data) this.attached += data.feed === 'attached' ? 1 : 0;
        else if ('item' in data) this.#take(Number(data.item));
        else this.missed += 1;
      },
      onError: (error) => {
        this.error = error.message;
      },
      onComplete: () => {
        this.completed = true;
      },
      onConnectionStateChange: ({ error }) => {
        if (error && transport === 'ws') this.lost += 1;
      },
    });
    this.#stop = () => subscription.unsubscribe();
  }

  #take(number: number): void {
    if (number < this.next) this.repeated += 1;
    this.missed += Math.max(0, number - this.next);
    this.next = Math.max(this.next, number + 1);
  }

  async close(): Promise<void> {
    this.#stop();
    await this.#client[Symbol.asyncDispose]();
  }
}

test(`${CLIENTS.ws + CLIENTS.sse} clients miss nothing and get nothing twice when all instances are replaced`, async () => {
  const env = {
    ...process.env,
    REDIS_URL: inject('redisUrl'),
    ORDERS_BROKER: '',
    ORDERS_PREFIX: `orders-test-${randomUUID()}`,
    ORDERS_DRAIN_MS: String(DRAIN_MS),
    ORDERS_GRACE_MS: String(GRACE_MS),
    // The demo's processes are forked from this one, which has no loader to hand on.
    NODE_OPTIONS: '--import tsx',
  };
  await using service = await startService(env);
  const { cluster, followers } = service;
  await until(() => followers.every(({ attached }) => attached === 1));

  const client = new Redis(env.REDIS_URL, { lazyConnect: true });
  await using broker = redisBroker({ client, prefix: env.ORDERS_PREFIX });
  let appended = 0;
  const append = async (): Promise<void> => {
    const order = { id: randomUUID(), item: String(appended), quantity: 1 };
    await broker.log.append('orders', JSON.stringify(order));
    appended += 1;
  };
  const stop = new AbortController();
  const appending = (async () => {
    while (!stop.signal.aborted) {
      await append();
      await delay(APPEND_EVERY_MS);
    }
  })();
  for (const instance of cluster.instances) {
    await instance.replace();
    await until(() => instance.live);
  }
  stop.abort();
  await appending;
  await append();
  await until(() => followers.every(({ next }) => next === appended));

  const sum = (of: (follower: Follower) => number): number =>
    followers.reduce((total, follower) => total + of(follower), 0);
  expect(sum(({ missed }) => missed)).toBe(0);
  expect(sum(({ repeated }) => repeated)).toBe(0);
  expect(followers.filter(({ error, completed }) => error !== undefined || completed)).toEqual([]);
  // Sockets were left by their clients, and not closed under them.
  expect(sum(({ lost }) => lost)).toBe(0);
  // Those of the first instance, and all when the second went.
  expect(sum(({ attached }) => attached)).toBeGreaterThan(followers.length * 2);
  expect(service.lines.filter((line) => line.includes('ended'))).toEqual(
    cluster.instances.map(({ name }) => `${name} ended (code 0), and is started again`),
  );
});

interface Service extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly followers: readonly Follower[];
  /** What happened to the instances. */
  readonly lines: readonly string[];
}

/** Starts two instances behind a proxy, and clients that follow the orders over both transports. */
async function startService(env: NodeJS.ProcessEnv): Promise<Service> {
  const lines: string[] = [];
  const cluster = new Cluster({ env, log: (line) => lines.push(line), restartMs: 0 });
  await Promise.all([cluster.add(), cluster.add()]);
  const proxy = await startProxy(await freePort(), () => cluster.instances);
  const urls = {
    httpUrl: `http://127.0.0.1:${proxy.port}/trpc`,
    wsUrl: `ws://127.0.0.1:${proxy.port}/trpc`,
  };
  const followers = (['ws', 'sse'] as const).flatMap((transport) =>
    Array.from({ length: CLIENTS[transport] }, () => new Follower(urls, transport)),
  );
  return {
    cluster,
    followers,
    lines,
    async [Symbol.asyncDispose]() {
      await Promise.all(followers.map((follower) => follower.close()));
      await proxy.close();
      await cluster.close();
      await forgetTopics(env);
    },
  };
}

/** Waits until something holds that changes by what other processes do. Bounded by the test's own time. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await delay(10);
}
