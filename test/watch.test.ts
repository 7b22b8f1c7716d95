import { announce, defineTopic, watch } from '@brokerfeed/core';
import { memoryBroker, memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed, watchFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { gate } from './support/gate.ts';
import { startInstance } from './support/instance.ts';
import { Moments } from './support/moments.ts';
import { TestMeter } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';
import { startWsServer } from './support/ws-server.ts';

const MIB = 1024 * 1024;

/** The first frame of each watch: what came before it is missing. */
const LAG = { feed: 'lagged' };

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a watch brings what is appended and announced on any instance, from its first frame on', async () => {
    const store = memoryStore();
    await using broker = memoryBroker({ store });
    await using peer = memoryBroker({ store });
    const router = t.router({
      watch: t.procedure.input(z.string()).subscription(watchFeed(broker, ({ input }) => input)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    await broker.log.append('presence', '0');
    const seen = new Seen();
    const subscription = client.trpc.watch.subscribe('presence', seen);
    await seen.until(() => seen.values.length === 1);
    announce(peer, 'presence', '{"at":1}');
    await seen.until(() => seen.values.length === 2);
    await peer.log.append('presence', ['2', '3']);
    await seen.until(() => seen.values.length === 4);
    expect(seen.values).toEqual([LAG, { at: 1 }, 2, 3]);

    subscription.unsubscribe();
    await expect.poll(() => heard(broker, 'presence')).toBe(false);
    expect(seen.errors).toEqual([]);
  });

  test('a client that comes back has missed what came meanwhile, and is told so', async () => {
    await using broker = memoryBroker();
    const door = gate();
    const topic = async (): Promise<string> => {
      await door.pass();
      return 'presence';
    };
    const router = t.router({ watch: t.procedure.subscription(watchFeed(broker, topic)) });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const seen = new Seen();
    const subscription = client.trpc.watch.subscribe(undefined, seen);
    await seen.until(() => seen.values.length === 1);
    announce(broker, 'presence', '1');
    await seen.until(() => seen.values.length === 2);
    door.close();
    server.dropSockets();
    await expect.poll(() => heard(broker, 'presence')).toBe(false);
    await broker.log.append('presence', '2');
    door.open();
    await seen.until(() => seen.values.length === 3);
    announce(broker, 'presence', '3');
    await seen.until(() => seen.values.length === 4);
    expect(seen.values).toEqual([LAG, 1, LAG, 3]);
    subscription.unsubscribe();
  });

  test.each(['pulled', 'pushed'])(
    'a watch beside a %s feed takes nothing from it: the feed resumes where it was, the watch begins anew',
    async (how) => {
      const meter = new TestMeter();
      await using broker = memoryBroker({ meter });
      const router = t.router({
        feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
        watch: t.procedure.subscription(watchFeed(broker, 'presence', { decode: 'text' })),
      });
      await using pulling = await startServer(router);
      await using pushing = await startInstance(router);
      const server = how === 'pulled' ? pulling : pushing;
      await using client = connect<typeof router>(server, transport);
      using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
      await meter.attached(1);
      const seen = new Seen();
      const subscription = client.trpc.watch.subscribe(undefined, seen);
      await seen.until(() => seen.values.length === 1);
      for (const value of ['1', '2']) {
        await broker.log.append('orders', value);
        await feed.take(Number(value));
        announce(broker, 'presence', value);
        await seen.until(() => seen.values.length === 1 + Number(value));
      }
      // The last frame of the socket was one of the watch, which has no id.
      if (server === pulling) pulling.dropSockets();
      else pushing.cut();
      announce(broker, 'presence', 'meanwhile');
      await broker.log.append('orders', '3');
      expect(await feed.take(3)).toEqual([1, 2, 3]);
      expect(new Set(feed.frames.map(({ id }) => id)).size).toBe(3);
      await seen.until(() => seen.values.length === 4);
      announce(broker, 'presence', 'after');
      await seen.until(() => seen.values.length === 5);
      expect(seen.values).toEqual([LAG, '1', '2', LAG, 'after']);
      expect([...seen.errors, ...feed.errors]).toEqual([]);
      subscription.unsubscribe();
    },
  );

  test('a feed of a defined topic brings its values, and goes on after a cut', async () => {
    const orders = defineTopic({
      name: ({ tenant }: { tenant: string }) => `orders.${tenant}`,
      schema: z.object({ id: z.number(), note: z.string().default('none') }),
    });
    const meter = new TestMeter();
    await using broker = memoryBroker({ meter });
    const router = t.router({
      feed: t.procedure.input(z.object({ tenant: z.string() })).subscription(
        brokerFeed(broker, orders, {
          ...SIGNED,
          params: ({ input }) => input,
          filter: (order) => order.id !== 2,
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe({ tenant: 'acme' }, on));
    await meter.attached(1);
    await orders.appendAll(broker, { tenant: 'acme' }, [
      { id: 1 },
      { id: 2 },
      { id: 3, note: 'x' },
    ]);
    await feed.take(2);
    server.dropSockets();
    await orders.append(broker, { tenant: 'acme' }, { id: 4 });
    expect(await feed.take(3)).toEqual([
      { id: 1, note: 'none' },
      { id: 3, note: 'x' },
      { id: 4, note: 'none' },
    ]);
  });
});

test('frames of a watch have no id, and what a client brings as one is ignored', async () => {
  const meter = new TestMeter();
  await using broker = memoryBroker({ meter });
  const router = t.router({
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    watch: t.procedure.subscription(watchFeed(broker, 'orders')),
  });
  await using server = await startWsServer(router);
  await using client = await RawClient.open(server.url);
  client.subscribe(1, 'feed');
  await meter.attached(1);
  await broker.log.append('orders', '1');
  await client.take(1, 1);
  client.subscribe(2, 'watch', { lastEventId: client.token(1) as string });
  await client.until(() => client.of(2).length === 2);
  await broker.log.append('orders', '2');
  await client.take(1, 2);
  await client.until(() => client.of(2).length === 3);
  const frames = (id: number) =>
    client.of(id).flatMap(({ result }) => (result?.type === 'data' ? [result] : []));
  expect(frames(2)).toEqual([
    { type: 'data', data: LAG },
    { type: 'data', data: 2 },
  ]);
  expect(frames(1).map(({ id }) => typeof id)).toEqual(['string', 'string']);
});

test('a drain moves clients and leaves the broker and its watches alone; its close ends them', async () => {
  await using broker = memoryBroker();
  const router = t.router({
    watch: t.procedure.subscription(watchFeed(broker, 'orders', { decode: 'text' })),
  });
  await using leaving = await startInstance(router);
  await using staying = await startInstance(router);
  await using client = connect<typeof router>(staying, 'ws');
  await using moved = connect<typeof router>(leaving, 'ws');
  const [seen, gone] = [new Seen(), new Seen()];
  const subscription = client.trpc.watch.subscribe(undefined, seen);
  moved.trpc.watch.subscribe(undefined, gone);
  const inProcess = await watch(broker, 'orders');
  await seen.until(() => seen.values.length === 1);
  await gone.until(() => gone.values.length === 1);

  await leaving.drain({ overMs: 0, graceMs: 0 });
  await broker.log.append('orders', 'after the drain');
  await seen.until(() => seen.values.length === 2);
  expect(await inProcess.next()).toMatchObject({ entry: { value: 'after the drain' } });
  expect((await broker.log.bounds('orders')).last.ordinal).toBe(1);
  subscription.unsubscribe();

  const next = inProcess.next();
  await broker.close();
  expect(await next).toEqual({ kind: 'closed' });
});

test('a socket that nobody reads costs the server no more than its buffer and the ring, and is then told what it missed', async () => {
  await using broker = memoryBroker();
  const router = t.router({
    watch: t.procedure.subscription(watchFeed(broker, 'noise', { capacity: 10 })),
  });
  await using server = await startWsServer(router);
  await using client = await RawClient.open(server.url);
  client.subscribe(1, 'watch');
  await client.until(() => client.of(1).length === 2);
  client.ws.pause();
  const ws = await server.socket(0);
  const fill = 'x'.repeat(10_000);
  const count = 2_000;
  let buffered = 0;
  for (let n = 0; n < count; n += 1) {
    announce(broker, 'noise', () => JSON.stringify({ n, fill }));
    await new Promise(setImmediate);
    buffered = Math.max(buffered, ws.bufferedAmount);
  }
  expect(buffered).toBeLessThan(2 * MIB);
  client.ws.resume();
  const dataOf = (): { n?: number; feed?: string; missed?: number }[] =>
    client.of(1).flatMap(({ result }) => (result?.type === 'data' ? [result.data as object] : []));
  await client.until(() => dataOf().at(-1)?.n === count - 1);
  // Every number comes, or is in the count that stands in its place.
  let next = 0;
  let lags = 0;
  for (const { n, missed } of dataOf().slice(1)) {
    if (missed === undefined) {
      expect(n).toBe(next);
      next += 1;
    } else {
      lags += 1;
      next += missed;
    }
  }
  expect(next).toBe(count);
  expect(lags).toBeGreaterThan(0);
});

/** What a subscription told its client, which gets values bare. */
class Seen {
  readonly values: unknown[] = [];
  readonly errors: unknown[] = [];
  readonly #moments = new Moments();

  readonly onData = (value: unknown): void => {
    this.values.push(value);
    this.#moments.tell();
  };
  readonly onError = (error: unknown): void => {
    this.errors.push(error);
    this.#moments.tell();
  };

  until(condition: () => boolean): Promise<void> {
    return this.#moments.until(condition, () => {
      const { values, errors } = this;
      return `not seen; seen: ${JSON.stringify({ values, errors: errors.map(String) })}`;
    });
  }
}

/** Tells whether somebody would hear an announcement: only then it is made. */
function heard(broker: Parameters<typeof announce>[0], topic: string): boolean {
  let made = false;
  announce(broker, topic, () => {
    made = true;
    return '"made by a look"';
  });
  return made;
}
