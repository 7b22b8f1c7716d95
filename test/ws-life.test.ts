import { once } from 'node:events';
import { brokerFeed } from '@brokerfeed/trpc';
import { createTRPCClient, createWSClient, wsLink } from '@trpc/client';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { collect } from './support/collector.ts';
import { gate } from './support/gate.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startWsServer, type WsServer } from './support/ws-server.ts';

const PUSHED = 'brokerfeed.feed.pushed';
const PAUSED = 'brokerfeed.feed.paused';

function feedRouter(broker: ObservedBroker) {
  return t.router({ feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)) });
}

async function append(broker: ObservedBroker, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += 1) await broker.log.append('orders', String(n));
}

/** What a connection is doing when it goes. */
interface Scene {
  readonly broker: ObservedBroker;
  readonly server: WsServer;
  readonly client: RawClient;
}

/** Brings a subscription to a step of its life. */
const STEPS: Record<string, (scene: Scene) => Promise<void>> = {
  'before it started': async ({ client }) => {
    client.subscribe(1, 'feed');
  },
  'when it has just started': async ({ client }) => {
    client.subscribe(1, 'feed');
    await client.started(1);
  },
  'while its first frame goes through tRPC': async ({ client, broker, server }) => {
    client.subscribe(1, 'feed');
    await client.started(1);
    const ws = await server.socket(0);
    const { send } = ws;
    ws.send = (...args: unknown[]) => {
      ws.send = send;
      ws.terminate();
      Reflect.apply(send, ws, args);
    };
    await append(broker, 0, 1);
  },
  'when it has just been pushed to': async ({ client, broker }) => {
    client.subscribe(1, 'feed');
    await client.started(1);
    await append(broker, 0, 10);
    await broker.meter.until(PUSHED, 1);
  },
  'while what was pushed waits for the round of writes': async ({ client, broker, server }) => {
    client.subscribe(1, 'feed');
    client.subscribe(2, 'closing');
    await client.started(2);
    await append(broker, 0, 1);
    await client.take(1, 1);
    await client.take(2, 1);
    await broker.meter.until(PUSHED, 2);
    closing.ws = await server.socket(0);
    await append(broker, 1, 2);
  },
  'while it is paused': async ({ client, broker }) => {
    client.subscribe(1, 'feed');
    await client.started(1);
    await append(broker, 0, 1);
    await client.take(1, 1);
    client.ws.pause();
    const large = JSON.stringify('x'.repeat(100_000));
    while (broker.meter.of(PAUSED) === 0) await broker.log.append('orders', large);
  },
  'after it was stopped': async ({ client, broker }) => {
    client.subscribe(1, 'feed');
    await client.started(1);
    await append(broker, 0, 10);
    await client.take(1, 10);
    client.stop(1);
    await client.stopped(1);
  },
};

const closing: { ws: WebSocket | undefined } = { ws: undefined };

const ENDS = {
  'the client is gone': ({ client }: Scene) => client.ws.terminate(),
  'the client closes': ({ client }: Scene) => {
    client.ws.resume();
    client.ws.close();
  },
  'the server cuts it': async ({ server, client }: Scene) => {
    (await server.socket(0)).terminate();
    client.ws.resume();
  },
  'the server closes': async ({ server, client }: Scene) => {
    (await server.socket(0)).close();
    client.ws.resume();
  },
};

describe.each(Object.entries(ENDS))('where %s', (_end, end) => {
  test.each(Object.entries(STEPS))('%s, nothing is left behind', async (_step, reach) => {
    await using broker = observedBroker();
    closing.ws = undefined;
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
      closing: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          filter: () => {
            closing.ws?.terminate();
            return true;
          },
        }),
      ),
    });
    await using server = await startWsServer(router, { attach: { maxBufferedBytes: 1 } });
    const client = await RawClient.open(server.url);
    await reach({ broker, server, client });
    await end({ broker, server, client });
    await client.closed();
    await broker.untilReads(0);
    // The server lives on, and serves the next one all that was missed.
    await append(broker, 100, 101);
    await using next = await RawClient.open(server.url);
    next.subscribe(1, 'feed', { lastEventId: client.token(1) ?? '' });
    await next.started(1);
    await append(broker, 101, 103);
    const values = await next.take(1, 2);
    await next.until(() => next.values(1).includes(102));
    expect(values.filter((value) => Number(value) >= 101).length).toBeGreaterThan(0);
    expect(next.values(1).slice(-2)).toEqual([101, 102]);
  });
});

test('a subscription that is stopped and taken up again under its id, again and again under a flood, misses nothing', async () => {
  await using broker = observedBroker();
  await using server = await startWsServer(feedRouter(broker));
  await using client = await RawClient.open(server.url);
  const total = 2_000;
  const flood = (async () => {
    for (let n = 0; n <= total; n += 1) {
      await broker.log.append('orders', String(n));
      if (n % 5 === 0) await new Promise(setImmediate);
    }
  })();
  const values: unknown[] = [];
  let last = '';
  for (let life = 0; values.at(-1) !== total; life += 1) {
    const seen = client.of(1).length;
    client.subscribe(1, 'feed', { lastEventId: last });
    // It is left when it has just started, or after some frames.
    await client.until(
      () => client.of(1).length > seen + (life % 7) || client.values(1).at(-1) === total,
    );
    client.stop(1);
    await client.stopped(1);
    const [started, ...frames] = client.of(1).slice(seen, -1);
    expect(started?.result?.type).toBe('started');
    for (const { result } of frames) {
      expect(result?.type).toBe('data');
      values.push((result as { data: { data: unknown } }).data.data);
      last = result?.id as string;
    }
  }
  await flood;
  const from = values[0] as number;
  expect(values).toEqual(Array.from({ length: total + 1 - from }, (_, n) => n + from));
  expect(broker.meter.of(PUSHED)).toBeGreaterThan(0);
});

test('after a stop nothing of the subscription follows, not even what the scheduler had queued', async () => {
  await using broker = observedBroker();
  await using server = await startWsServer(feedRouter(broker));
  await using client = await RawClient.open(server.url);
  client.subscribe(1, 'feed');
  await client.started(1);
  await append(broker, 0, 2);
  await client.take(1, 2);
  client.stop(1);
  for (let n = 0; n < 200; n += 1) {
    void broker.log.append('orders', String(n));
    if (n % 10 === 0) await new Promise(setImmediate);
  }
  await client.stopped(1);
  await broker.untilReads(0);
  const length = client.of(1).length;
  client.subscribe(2, 'feed');
  await client.started(2);
  expect(client.of(1).length).toBe(length);
  expect(client.of(1).at(-1)?.result?.type).toBe('stopped');
});

test('a feed that fails while it is pushed tells the client as tRPC does: error, then stopped', async () => {
  await using broker = observedBroker();
  await using server = await startWsServer(feedRouter(broker));
  await using client = await RawClient.open(server.url);
  client.subscribe(1, 'feed');
  await client.started(1);
  await append(broker, 0, 3);
  await client.take(1, 3);
  await broker.close();
  await client.until(() => client.of(1).length === 5 || client.ws.readyState !== WebSocket.OPEN);
  const [error, ...rest] = client.of(1).slice(4);
  expect(error?.error?.data).toMatchObject({ feed: { status: 503, reason: 'closing' } });
  expect(rest.map(({ result }) => result?.type)).toEqual(rest.length > 0 ? ['stopped'] : []);
});

test('a stock client that is asked to reconnect gets everything once and in order, from both sockets', async () => {
  await using broker = observedBroker();
  const router = feedRouter(broker);
  await using server = await startWsServer(router);
  const socket = createWSClient({
    url: server.url,
    retryDelayMs: () => 20,
    WebSocket: WebSocket as unknown as typeof globalThis.WebSocket,
  });
  const trpc = createTRPCClient<typeof router>({ links: [wsLink({ client: socket })] });
  using feed = collect((on) => trpc.feed.subscribe(undefined, on));
  await feed.ready();
  let appended = 0;
  for (let move = 0; move < 5; move += 1) {
    // Entries before, during and after each move.
    for (let n = 0; n < 20; n += 1) await broker.log.append('orders', String(appended++));
    const before = server.sockets.length;
    const left = once(await server.socket(before - 1), 'close');
    server.broadcastReconnect();
    while (server.sockets.length === before) {
      await broker.log.append('orders', String(appended++));
      await new Promise(setImmediate);
    }
    for (let n = 0; n < 20; n += 1) await broker.log.append('orders', String(appended++));
    await feed.take(appended);
    await left;
    for (let n = 0; n < 2; n += 1) await broker.log.append('orders', String(appended++));
    await feed.take(appended);
  }
  expect(feed.values).toEqual([...Array(appended).keys()]);
  expect(feed.errors).toEqual([]);
  expect(server.sockets.length).toBe(6);
  expect(broker.meter.of(PUSHED)).toBe(6);
  feed.unsubscribe();
  await socket.close();
});

test('a pushed feed whose server pauses a value before the trial ends is not pushed to a socket that has gone', async () => {
  await using broker = observedBroker();
  const mapping = gate();
  const router = t.router({
    feed: t.procedure.subscription(
      brokerFeed(broker, 'orders', {
        ...SIGNED,
        map: async (value) => {
          await mapping.pass();
          return value;
        },
      }),
    ),
  });
  await using server = await startWsServer(router);
  const client = await RawClient.open(server.url);
  client.subscribe(1, 'feed');
  await client.started(1);
  mapping.close();
  await append(broker, 0, 1);
  await mapping.reached;
  client.ws.terminate();
  await client.closed();
  await broker.untilReads(0);
  mapping.open();
  await append(broker, 1, 3);
  expect(broker.meter.of(PUSHED)).toBe(0);
  expect(client.values(1)).toEqual([]);
});
