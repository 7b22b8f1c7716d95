import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { brokerFeed } from '@brokerfeed/trpc';
import { createTRPCClient, createWSClient, wsLink } from '@trpc/client';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { collect } from './support/collector.ts';
import { COMMIT, counter, fill, flood } from './support/flood.ts';
import { observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

/** These move much data: on a busy machine they take their time. */
const LONG_MS = 60_000;

const PUSHED = 'brokerfeed.feed.pushed';
const PAUSED = 'brokerfeed.feed.paused';
const MIB = 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage: () => void = runInNewContext('gc');

/** Bytes that live in this process, inside the heap and out. */
async function memory(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    collectGarbage();
    await new Promise(setImmediate);
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { interval: 5, timeout: LONG_MS }).toBe(true);
}

test(
  'a socket that nobody reads costs the server a bounded buffer, however much is appended, and then gets all of it',
  async () => {
    const entries = 100_000;
    await using broker = observedBroker({ retention: { maxEntries: entries + 10_000 } });
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    const seen = counter(client);
    client.subscribe(1, 'feed');
    await broker.meter.attached(1);
    await flood(broker, 'orders', 0, 1_000);
    await until(() => seen.next === 1_000);
    client.ws.pause();
    const ws = await server.socket(0);
    // The log itself holds the entries: what another topic takes for as many is not the socket's.
    const before = await memory();
    await flood(broker, 'nobody reads this', 0, entries);
    const log = (await memory()) - before;
    const start = await memory();
    let buffered = 0;
    for (let n = 1_000; n < entries; n += 1_000) {
      await flood(broker, 'orders', n, n + 1_000);
      buffered = Math.max(buffered, ws.bufferedAmount);
    }
    await broker.meter.until(PAUSED, 1);
    const grown = (await memory()) - start - log;
    expect(buffered).toBeGreaterThan(MIB);
    expect(buffered).toBeLessThan(1.5 * MIB);
    expect(grown).toBeLessThan(8 * MIB);
    expect(seen.next).toBeLessThan(entries);
    client.ws.resume();
    await until(() => seen.next === entries);
    expect(broker.meter.of(PUSHED)).toBe(1);
  },
  LONG_MS,
);

describe('a socket that is not read while a feed goes through a wrapper', () => {
  test(
    'holds back the feed too, gets all of it in the end, and can be left',
    async () => {
      await using broker = observedBroker({ retention: { maxEntries: 100_000 } });
      let produced = 0;
      const router = t.router({
        feed: t.procedure.subscription(async function* (opts) {
          const feed = await brokerFeed(broker, 'orders', SIGNED)(opts);
          for await (const frame of feed) {
            produced += 1;
            yield frame;
          }
        }),
      });
      await using server = await startWsServer(router, { attach: { maxBufferedBytes: 200_000 } });
      await using client = await RawClient.open(server.url);
      const seen = counter(client);
      client.subscribe(1, 'feed');
      await broker.meter.attached(1);
      client.ws.pause();
      const ws = await server.socket(0);
      let appended = 0;
      let buffered = 0;
      // The kernel takes some megabytes first.
      while (appended < 25_000) {
        await flood(broker, 'orders', appended, appended + COMMIT);
        appended += COMMIT;
        buffered = Math.max(buffered, ws.bufferedAmount);
      }
      expect(buffered).toBeGreaterThan(200_000);
      expect(buffered).toBeLessThan(210_000);
      expect(produced).toBeLessThan(appended);
      client.ws.resume();
      await until(() => seen.next === appended);
      expect(broker.meter.of(PUSHED)).toBe(0);

      client.ws.pause();
      while (ws.bufferedAmount <= 200_000) {
        await flood(broker, 'orders', appended, appended + COMMIT);
        appended += COMMIT;
      }
      ws.terminate();
      await broker.untilReads(0);
    },
    LONG_MS,
  );
});

test.each([
  ['as it is', {}],
  ['compressed', { perMessageDeflate: { threshold: 0 } }],
] as const)(
  'a small maxBufferedBytes slows a feed down and never stops it: %s',
  async (_name, deflate) => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
      echo: t.procedure.query(() => 'x'.repeat(3_000)),
    });
    await using server = await startWsServer(router, {
      attach: { maxBufferedBytes: 1 },
      server: deflate,
    });
    await using client = await RawClient.open(server.url, deflate);
    client.subscribe('feed', 'feed');
    await client.started('feed');
    for (let n = 0; n < 500; n += 1) {
      await broker.log.append('orders', fill(n));
      if (n % 50 === 0) {
        // Replies fill the socket as well.
        client.send({ id: n, method: 'query', params: { path: 'echo' } });
        await new Promise(setImmediate);
      }
    }
    const values = await client.take('feed', 500);
    expect(values.map((value) => (value as { n: number }).n)).toEqual([...Array(500).keys()]);
    expect(broker.meter.of(PUSHED)).toBe(1);
  },
);

describe('a client that is too slow', () => {
  /** A stock client whose sockets can be paused. */
  function stock(url: string) {
    const sockets: WebSocket[] = [];
    class Watched extends WebSocket {
      constructor(address: string | URL) {
        super(address, { perMessageDeflate: false });
        sockets.push(this);
      }
    }
    const client = createWSClient({
      url,
      retryDelayMs: () => 20,
      WebSocket: Watched as unknown as typeof globalThis.WebSocket,
    });
    return { client, sockets };
  }

  test('is disconnected if asked for, and resumes without loss', async () => {
    await using broker = observedBroker({ retention: { maxEntries: 100_000 } });
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startWsServer(router, {
      attach: { slowReader: 'disconnect', drainTimeoutMs: 1, maxBufferedBytes: 100_000 },
    });
    const { client, sockets } = stock(server.url);
    const trpc = createTRPCClient<typeof router>({ links: [wsLink({ client })] });
    using feed = collect((on) => trpc.feed.subscribe(undefined, on));
    await feed.ready();
    await flood(broker, 'orders', 0, COMMIT);
    await feed.take(COMMIT);
    sockets[0]?.pause();
    let appended = COMMIT;
    const closed = (): boolean => server.sockets[0]?.readyState === WebSocket.CLOSED;
    while (!closed()) {
      await flood(broker, 'orders', appended, appended + COMMIT);
      appended += COMMIT;
    }
    sockets[0]?.resume();
    const numbers = (): number[] => feed.values.map((value) => (value as { n: number }).n);
    await feed.until(() => numbers().at(-1) === appended - 1);
    // A client that was cut inside a commit gets that commit again.
    expect([...new Set(numbers())]).toEqual([...Array(appended).keys()]);
    expect(server.sockets.length).toBeGreaterThan(1);
    feed.unsubscribe();
    await client.close();
  });

  test('is waited for by default, and so is one that catches up on a long log', async () => {
    const entries = 20_000;
    await using broker = observedBroker({ retention: { maxEntries: entries } });
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest', highWaterMark: 100 }),
      ),
    });
    await flood(broker, 'orders', 0, entries);
    for (const slowReader of ['wait', 'disconnect'] as const) {
      await using server = await startWsServer(router, { attach: { slowReader } });
      await using client = await RawClient.open(server.url);
      const seen = counter(client);
      client.subscribe(1, 'feed');
      await until(() => seen.next === entries);
      expect(client.ws.readyState).toBe(WebSocket.OPEN);
    }
  });
});
