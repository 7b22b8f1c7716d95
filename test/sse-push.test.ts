import { once } from 'node:events';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { brokerFeed } from '@brokerfeed/trpc';
import { withFeeds } from '@brokerfeed/trpc/sse';
import { initTRPC } from '@trpc/server';
import { createHTTP2Handler } from '@trpc/server/adapters/standalone';
import { describe, expect, test } from 'vitest';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';
import { EventReader, type StreamServer, startStreamServer } from './support/event-streams.ts';
import { gate } from './support/gate.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';

const PUSHED = 'brokerfeed.feed.pushed';
const PAUSED = 'brokerfeed.feed.paused';

const KIB = 1024;

function feedRouter(broker: ObservedBroker) {
  return t.router({ feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)) });
}

describe('sharing', () => {
  // What the attachment leans on: tRPC calls the procedure that is in `info` after it has made the context, begins the
  // stream as it does, and waits for the first value. Where a release changes that, feeds are pulled, and this fails.
  test('an entry is encoded once for all subscribers', async () => {
    await using broker = observedBroker();
    let serialized = 0;
    const serialize = (data: unknown): unknown => {
      serialized += 1;
      return { data };
    };
    const transformer = {
      input: { serialize: (data: unknown) => data, deserialize: (data: unknown) => data },
      output: { serialize, deserialize: (data: unknown) => data },
    };
    const root = initTRPC.create({ transformer });
    const router = root.router({
      feed: root.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startStreamServer(router);
    const readers = await Promise.all(
      Array.from({ length: 20 }, () => EventReader.open(`${server.httpUrl}/feed`)),
    );
    await broker.meter.until(PUSHED, 20);
    await broker.log.append('orders', ['1', '2', '3']);
    for (let n = 4; n <= 10; n += 1) await broker.log.append('orders', String(n));
    for (const reader of readers) await reader.take(10);
    expect(new Set(readers.map(({ text }) => text)).size).toBe(1);
    expect(serialized).toBe(10);
    for (const reader of readers) await reader[Symbol.asyncDispose]();
    await broker.untilReads(0);
  });

  test('each subscriber gets what is its own', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .input((input) => input as { readonly n: number })
        .subscription(
          brokerFeed(broker, 'orders', {
            ...SIGNED,
            filter: (value, { input }) => Number(value) % input.n === 0,
            map: (value, _entry, { input }) => `${input.n}: ${value}`,
          }),
        ),
    });
    await using server = await startStreamServer(router);
    const open = (n: number): Promise<EventReader> =>
      EventReader.open(`${server.httpUrl}/feed?input=${encodeURIComponent(JSON.stringify({ n }))}`);
    await using two = await open(2);
    await using three = await open(3);
    await broker.meter.until(PUSHED, 2);
    for (let n = 0; n < 7; n += 1) await broker.log.append('orders', String(n));
    expect(await two.take(4)).toEqual(['2: 0', '2: 2', '2: 4', '2: 6']);
    expect(await three.take(3)).toEqual(['3: 0', '3: 3', '3: 6']);
  });
});

describe('a reader that pauses', () => {
  const VALUE_BYTES = 8 * KIB;
  const ENTRIES = 2500;
  /** A run of entries is written whole. */
  const RUN_BYTES = 300 * KIB;

  test('makes the server hold little, and then gets everything in order', async () => {
    await using broker = observedBroker();
    const maxBufferedBytes = 64 * KIB;
    await using server = await startStreamServer(feedRouter(broker), {
      feeds: { maxBufferedBytes },
    });
    await using reader = await EventReader.open(`${server.httpUrl}/feed`);
    await using other = await EventReader.open(`${server.httpUrl}/feed`);
    await broker.meter.until(PUSHED, 2);
    reader.pause();
    let held = 0;
    const padding = 'x'.repeat(VALUE_BYTES);
    for (let n = 0; n < ENTRIES; n += 1) {
      await broker.log.append('orders', JSON.stringify(`${n} ${padding}`));
      held = Math.max(held, ...server.sockets.map(({ writableLength }) => writableLength));
    }
    await broker.meter.until(PAUSED, 1);
    // Whoever reads on is not held up.
    await other.bytes(ENTRIES * VALUE_BYTES);
    held = Math.max(held, ...server.sockets.map(({ writableLength }) => writableLength));
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(maxBufferedBytes + RUN_BYTES);
    reader.resume();
    await reader.bytes(ENTRIES * VALUE_BYTES);
    await reader.until(() => reader.frames.length === ENTRIES);
    expect(reader.values.map((value) => Number.parseInt(String(value), 10))).toEqual(
      Array.from({ length: ENTRIES }, (_, n) => n),
    );
    expect(reader.text === other.text).toBe(true);
  });

  test('and is gone leaves nothing', async () => {
    await using broker = observedBroker();
    await using server = await startStreamServer(feedRouter(broker), {
      feeds: { maxBufferedBytes: KIB },
    });
    await using reader = await EventReader.open(`${server.httpUrl}/feed`);
    await broker.meter.until(PUSHED, 1);
    reader.pause();
    const value = JSON.stringify('x'.repeat(VALUE_BYTES));
    const isPaused = (): boolean => broker.meter.of(PAUSED) > 0 && isFull(server);
    for (let n = 0; n < 2000 && !isPaused(); n += 1) {
      await broker.log.append('orders', [value, value, value, value]);
      await new Promise(setImmediate);
    }
    expect(isPaused()).toBe(true);
    await reader[Symbol.asyncDispose]();
    await broker.untilReads(0);
  });
});

/** Whether the network takes no more. */
function isFull({ sockets }: StreamServer): boolean {
  return sockets.some(({ writableNeedDrain }) => writableNeedDrain);
}

describe('a client that goes leaves no read behind', () => {
  test('while the topic is found', async () => {
    await using broker = observedBroker();
    const finding = gate();
    finding.close();
    const opened = gate();
    const topic = async (): Promise<string> => {
      await finding.pass();
      return 'orders';
    };
    const procedure = t.procedure.use(async ({ next }) => {
      const result = await next();
      await opened.pass();
      return result;
    });
    const router = t.router({ feed: procedure.subscription(brokerFeed(broker, topic, SIGNED)) });
    opened.close();
    await using server = await startStreamServer(router);
    const opening = EventReader.open(`${server.httpUrl}/feed`);
    await finding.reached;
    for (const socket of server.sockets) socket.destroy();
    await expect(opening).rejects.toThrow();
    finding.open();
    await opened.reached;
    opened.open();
    await new Promise(setImmediate);
    await broker.untilReads(0);
    expect(broker.meter.of(PUSHED)).toBe(0);
  });

  test.each([
    ['before its first value', 0],
    ['after some', 5],
  ])('%s', async (_name, count) => {
    await using broker = observedBroker();
    await using server = await startStreamServer(feedRouter(broker));
    const readers = [];
    for (let n = 1; n <= 5; n += 1) {
      readers.push(await EventReader.open(`${server.httpUrl}/feed`));
      await broker.meter.until(PUSHED, n);
    }
    for (let n = 0; n < count; n += 1) await broker.log.append('orders', String(n));
    for (const reader of readers) await reader.take(count);
    expect(broker.reads).toBe(1);
    // Some by themselves, some cut off.
    for (const reader of readers.slice(0, 2)) await reader[Symbol.asyncDispose]();
    for (const socket of server.sockets) socket.destroy();
    await broker.untilReads(0);
  });

  test('while its value is made', async () => {
    await using broker = observedBroker();
    const mapping = gate();
    mapping.close();
    const map = async (value: unknown): Promise<unknown> => {
      await mapping.pass();
      return value;
    };
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, map })),
    });
    await using server = await startStreamServer(router);
    await using reader = await EventReader.open(`${server.httpUrl}/feed`);
    await broker.meter.until(PUSHED, 1);
    await broker.log.append('orders', '1');
    await mapping.reached;
    await reader[Symbol.asyncDispose]();
    await broker.untilReads(0);
    mapping.open();
    expect(reader.values).toEqual([]);
  });

  test('in the middle of a ready log', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })),
    });
    const value = JSON.stringify('x'.repeat(10 * KIB));
    for (let n = 0; n < 50; n += 1) await broker.log.append('orders', Array(40).fill(value));
    await using server = await startStreamServer(router);
    await using reader = await EventReader.open(`${server.httpUrl}/feed`);
    await reader.bytes(KIB);
    await reader[Symbol.asyncDispose]();
    await broker.untilReads(0);
  });
});

describe('a stock client', () => {
  test('that is cut off again and again resumes, and misses, repeats and reorders nothing', async () => {
    await using broker = observedBroker();
    const router = feedRouter(broker);
    await using server = await startStreamServer(router);
    await using client = connect<typeof router>({ httpUrl: server.httpUrl, wsUrl: '' }, 'sse');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.until(PUSHED, 1);
    let n = 0;
    const appendSome = async (): Promise<void> => {
      for (const end = n + 30; n < end; n += 1) await broker.log.append('orders', String(n));
    };
    await appendSome();
    await feed.take(1);
    for (let cuts = 2; cuts <= 5; cuts += 1) {
      for (const socket of server.sockets.splice(0)) socket.destroy();
      await appendSome();
      await broker.meter.until(PUSHED, cuts);
      await appendSome();
    }
    expect(await feed.take(n)).toEqual(Array.from({ length: n }, (_, at) => at));
    expect(new Set(feed.frames.map(({ id }) => id)).size).toBe(n);
    expect(feed.errors).toEqual([]);
  });

  test('that unsubscribes gets nothing more', async () => {
    await using broker = observedBroker();
    const router = feedRouter(broker);
    await using server = await startStreamServer(router);
    await using client = connect<typeof router>({ httpUrl: server.httpUrl, wsUrl: '' }, 'sse');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.until(PUSHED, 1);
    await broker.log.append('orders', '1');
    await feed.take(1);
    feed.unsubscribe();
    await broker.untilReads(0);
    await broker.log.append('orders', '2');
    expect([feed.values, feed.errors]).toEqual([[1], []]);
  });
});

test('a feed is pushed over HTTP/2 too', async () => {
  await using broker = observedBroker();
  const server = createHttp2Server(createHTTP2Handler(withFeeds({ router: feedRouter(broker) })));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  // Two on one connection: each pauses alone.
  const [first, second] = [
    session.request({ ':path': '/feed' }),
    session.request({ ':path': '/feed' }),
  ];
  await broker.meter.until(PUSHED, 2);
  let text = '';
  const ids: string[] = [];
  const all = (async () => {
    for await (const chunk of first) {
      text += chunk;
      if (text.includes('data: "last"')) return;
    }
  })();
  const padding = 'x'.repeat(10 * KIB);
  for (let n = 0; n < 400; n += 1)
    await broker.log.append('orders', JSON.stringify(`${n} ${padding}`));
  await broker.log.append('orders', '"last"');
  await all;
  for (const [, n] of text.matchAll(/\ndata: "(\d+) /g)) ids.push(String(n));
  expect(ids).toEqual(Array.from({ length: 400 }, (_, n) => String(n)));
  await broker.meter.until(PAUSED, 1);
  second.destroy();
  session.destroy();
  await broker.untilReads(0);
  server.close();
});
