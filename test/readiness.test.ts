import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { OrderStore } from '../examples/orders/order-store.ts';
import type { OrdersRouter } from '../examples/orders/router.ts';
import { startServer } from '../examples/orders/server.ts';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';
import { startRedis } from './support/redis.ts';

const ORDER = { id: 'b2fba8a3-04a3-4b35-a0b8-2a8c50b9a0d1', item: 'cortado', quantity: 1 };

test('the readiness probe is red while Redis is frozen, and green again when feeds get their entries', async () => {
  await using redis = await startRedis();
  const client = new Redis(redis.url, { lazyConnect: true });
  const waits = { checkMs: 100, replyTimeoutMs: 300, retryMs: 100 };
  await using broker = redisBroker({ client, ...waits });
  const dir = await mkdtemp(join(tmpdir(), 'orders-'));
  const secret = 'good enough for a test';
  const server = await startServer({
    broker,
    store: new OrderStore(dir),
    secret,
    port: 0,
    maxStallMs: 50,
  });
  const url = `http://127.0.0.1:${server.port}`;
  const probe = async (): Promise<{ status: number; topics: number }> => {
    const response = await fetch(`${url}/ready`);
    const { topics } = (await response.json()) as { topics: number };
    return { status: response.status, topics };
  };
  const untilStatus = async (status: number): Promise<void> => {
    while ((await probe()).status !== status) await delay(10);
  };
  expect(await probe()).toEqual({ status: 200, topics: 0 });

  await using sse = connect<OrdersRouter>({ httpUrl: `${url}/trpc`, wsUrl: '' }, 'sse');
  using feed = collect((on) => sse.trpc.orders.feed.subscribe(undefined, on));
  await feed.take(1);
  // It may just have been asked for the first time: the live read comes about a moment later.
  await untilStatus(200);
  expect((await probe()).topics).toBe(1);

  // Its connections stay as they are, and nothing comes.
  await redis.kill('SIGSTOP');
  await untilStatus(503);
  await redis.kill('SIGCONT');
  await untilStatus(200);
  await broker.log.append('orders', JSON.stringify(ORDER));
  await feed.until(({ values }) =>
    values.some((value) => (value as object) === value && 'item' in (value as object)),
  );

  await server.drain({ overMs: 0 });
  expect((await probe()).status).toBe(503);
  await server.close();
  await rm(dir, { recursive: true });
});
