import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FeedState, feedLink, feedReason, memoryStore } from '@brokerfeed/client';
import { type Broker, BrokerError } from '@brokerfeed/core';
import { type JournalBroker, journalBroker } from '@brokerfeed/journal';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { createTRPCClient, createWSClient, httpSubscriptionLink, wsLink } from '@trpc/client';
import { initTRPC, TRPCError, tracked } from '@trpc/server';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { EventSource } from 'eventsource';
import superjson from 'superjson';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { ATTACHED, BASE_MS, connectFeeds, kept } from './support/feed-client.ts';
import { type Gate, gate } from './support/gate.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

/** Waits of a server that tries its log again and again, for longer than a test takes. */
const OFTEN_MS = Array.from({ length: 1_000 }, () => 20);

/** A feed that stops before the value 3 as long as the gate is closed. */
function slowBefore3(broker: Broker, slow: Gate) {
  return brokerFeed(broker, 'orders', {
    ...SIGNED,
    map: async (value) => {
      if (value === 3) await slow.pass();
      return value;
    },
  });
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a client dropped inside a commit gets that commit again, and its consumer only the rest', async () => {
    await using broker = observedBroker();
    const slow = gate();
    const router = t.router({ feed: t.procedure.subscription(slowBefore3(broker, slow)) });
    await using server = await startServer(router);
    await using client = connectFeeds<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    slow.close();
    await broker.log.append('orders', ['1', '2', '3', '4']);
    await feed.take(2);
    server.dropSockets();
    slow.open();
    await feed.take(4);
    await broker.log.append('orders', '5');
    expect(await feed.take(5)).toEqual([1, 2, 3, 4, 5]);
    expect(broker.meter.of('brokerfeed.feed.resumes resumed')).toBe(1);
  });

  test('a journal that is started again inside a commit repeats and loses nothing', async () => {
    await using folder = await temporaryFolder();
    const slow = gate();
    const open = (): JournalBroker => journalBroker({ dir: folder.path });
    const routerOn = (broker: JournalBroker) =>
      t.router({ feed: t.procedure.subscription(slowBefore3(broker, slow)) });
    const before = open();
    await before.log.append('orders', '0');
    const router = routerOn(before);
    await using server = await startServer(router);
    const store = memoryStore();
    await using client = connectFeeds<typeof router>(server, transport, { store });
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await feed.ready();
    await before.log.append('orders', '"first"');
    await feed.take(1);
    slow.close();
    await before.log.append('orders', ['1', '2', '3', '4']);
    await feed.take(3);
    slow.open();
    server.dropSockets();
    await before.close();
    await using after = open();
    await server.restart(routerOn(after));
    await after.log.append('orders', '5');
    expect(await feed.take(6)).toEqual(['first', 1, 2, 3, 4, 5]);
    expect(feed.errors).toEqual([]);
  });

  test('a 503 is tried again until the log is back, and nothing is lost', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, retryDelaysMs: [] }),
      ),
    });
    await using server = await startServer(router);
    await using client = connectFeeds<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await broker.log.append('orders', '1');
    await feed.take(1);
    broker.breakReads(new BrokerError('UNAVAILABLE', 'connection lost'));
    await client.untilTold((told) => told.length >= 4);
    await broker.log.append('orders', '2');
    broker.breakReads(undefined);
    expect(await feed.take(2)).toEqual([1, 2]);
    expect([client.told[0], client.told.at(-1)]).toEqual(['attached', 'attached']);
    expect(new Set(client.told)).toEqual(new Set(['attached', 'lost']));
    const reasons = client.states.flatMap((state) =>
      state.state === 'lost' ? [feedReason(state.error), state.retryMs] : [],
    );
    expect(reasons[0]).toBe('unavailable');
    expect(reasons[1]).toBeLessThanOrEqual(BASE_MS);
    expect(feed.errors).toEqual([]);
  });

  test('a page that is loaded again goes on from the store', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .input(z.object({ room: z.string() }))
        .subscription(brokerFeed(broker, ({ input }) => `orders.${input.room}`, SIGNED)),
    });
    await using server = await startServer(router);
    const store = memoryStore();
    await using before = connectFeeds<typeof router>(server, transport, { store });
    const left = collect((on) => before.trpc.feed.subscribe({ room: 'a' }, on));
    await broker.meter.attached(1);
    await broker.log.append('orders.a', ['1', '2']);
    await left.take(2);
    left.unsubscribe();
    await broker.log.append('orders.a', '3');
    await using after = connectFeeds<typeof router>(server, transport, { store });
    using feed = collect((on) => after.trpc.feed.subscribe({ room: 'a' }, on));
    await feed.take(1);
    await broker.log.append('orders.a', '4');
    expect(await feed.take(2)).toEqual([3, 4]);
    expect(after.states).toEqual([ATTACHED]);
  });

  test('control frames are hidden, and the states of the feed are told in order', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, control: true, retryDelaysMs: OFTEN_MS }),
      ),
    });
    await using server = await startServer(router);
    await using client = connectFeeds<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await client.untilTold((told) => told.includes('live'));
    await broker.log.append('orders', '1');
    await feed.take(1);
    broker.breakReads(new BrokerError('UNAVAILABLE', 'connection lost'));
    await client.untilTold((told) => told.includes('outage'));
    broker.breakReads(undefined);
    await client.untilTold((told) => told.at(-1) === 'live');
    await broker.log.append('orders', '2');
    expect(await feed.take(2)).toEqual([1, 2]);
    expect(client.told).toEqual(['attached', 'live', 'outage', 'live']);
    server.dropSockets();
    await client.untilTold((told) => told.includes('lost') && told.at(-1) === 'live');
    expect(client.told.slice(4)).toEqual(['lost', 'attached', 'live']);
    await broker.log.append('orders', '3');
    expect(await feed.take(3)).toEqual([1, 2, 3]);
  });

  test('catching up is told, and its end once what was missed has come', async () => {
    await using broker = observedBroker();
    for (const value of ['1', '2', '3']) await broker.log.append('orders', value);
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, control: true, from: 'earliest' }),
      ),
    });
    await using server = await startServer(router);
    await using client = connectFeeds<typeof router>(server, transport);
    const before: unknown[] = [];
    using feed = collect((on) =>
      client.trpc.feed.subscribe(undefined, {
        ...on,
        onData(frame) {
          before.push(client.told.at(-1));
          on.onData(frame);
        },
      }),
    );
    await client.untilTold((told) => told.at(-1) === 'live');
    expect(feed.values).toEqual([1, 2, 3]);
    expect(before).toEqual(['catching-up', 'catching-up', 'catching-up']);
    expect(client.told).toEqual(['attached', 'catching-up', 'live']);
  });

  test.each([[['a', 'b']], [undefined]])(
    'with the snapshot %j of the server, the gap is told first and live last',
    async (snapshot) => {
      await using broker = observedBroker();
      const router = t.router({
        feed: t.procedure.subscription(
          brokerFeed(broker, 'orders', { ...SIGNED, control: true, onGap: () => snapshot }),
        ),
      });
      await using server = await startServer(router);
      await using client = connectFeeds<typeof router>(server, transport, {
        store: kept('garbage'),
      });
      using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
      await client.untilTold((told) => told.at(-1) === 'live');
      expect(feed.values).toEqual(snapshot ?? []);
      // Over WebSockets a subscription whose token was in the store stands when it is started.
      expect(client.told).toEqual(['attached', 'gap', 'catching-up', 'live']);
    },
  );

  test('a session that ends in mid-subscription ends it with 401; after renewal it goes on without a gap', async () => {
    await using broker = observedBroker();
    let signedIn = true;
    const router = t.router({
      feed: t.procedure
        .use(({ next }) => {
          if (!signedIn) throw new TRPCError({ code: 'UNAUTHORIZED' });
          return next();
        })
        .subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connectFeeds<typeof router>(server, transport, { store: memoryStore() });
    using expired = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await broker.log.append('orders', '1');
    await expired.take(1);
    signedIn = false;
    server.dropSockets();
    expect(await expired.refusal()).toMatchObject({ httpStatus: 401 });
    await broker.log.append('orders', '2');
    signedIn = true;
    using renewed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    expect(await renewed.take(1)).toEqual([2]);
  });

  test('a server without feeds is none the wiser: the same calls, frames and errors as with a stock client', async () => {
    const inputs: unknown[] = [];
    const router = t.router({
      hello: t.procedure.input(z.string()).query(({ input }) => `hello ${input}`),
      count: t.procedure
        .input(z.object({ lastEventId: z.string().optional() }))
        .subscription(async function* ({ input, signal }) {
          inputs.push(input);
          for (let n = Number(input.lastEventId ?? 0) + 1; n <= 3; n += 1) {
            yield tracked(String(n), n);
          }
          if (inputs.length === 1)
            await new Promise((resolve) => signal?.addEventListener('abort', resolve));
          if (inputs.length === 2) throw new TRPCError({ code: 'BAD_REQUEST', message: 'enough' });
        }),
    });
    await using server = await startServer(router);
    await using client = connectFeeds<typeof router>(server, transport, { store: memoryStore() });
    using feed = collect((on) => client.trpc.count.subscribe({}, on));
    await feed.take(3);
    server.dropSockets();
    expect(await feed.refusal()).toMatchObject({ httpStatus: 400 });
    expect(inputs).toEqual([{}, { lastEventId: '3' }]);
    expect(feed.frames).toEqual([1, 2, 3].map((n) => ({ id: String(n), data: n })));
    expect(client.states).toEqual([]);
    if (transport === 'ws') expect(await client.trpc.hello.query('you')).toBe('hello you');
  });
});

test('over ws, a server that asks its clients to move inside a commit repeats, loses and reorders nothing', async () => {
  await using broker = observedBroker();
  const slow = gate();
  const router = t.router({ feed: t.procedure.subscription(slowBefore3(broker, slow)) });
  await using server = await startServer(router);
  await using client = connectFeeds<typeof router>(server, 'ws');
  using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
  await broker.meter.attached(1);
  slow.close();
  await broker.log.append('orders', ['1', '2', '3', '4']);
  await feed.take(2);
  server.broadcastReconnect();
  await broker.meter.attached(2);
  slow.open();
  await broker.log.append('orders', '5');
  await feed.until(({ values }) => values.includes(5));
  await broker.log.append('orders', '6');
  await feed.until(({ values }) => values.includes(6));
  expect(feed.values).toEqual([1, 2, 3, 4, 5, 6]);
});

test('over sse, a proxy that answers 502 while the server is away ends nothing', async () => {
  await using broker = observedBroker();
  const router = t.router({
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
  });
  const handler = createHTTPHandler({ router });
  let away = false;
  const proxy = createServer((request, response) => {
    if (away) response.writeHead(502).end();
    else handler(request, response);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const httpUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  {
    await using client = connectFeeds<typeof router>({ httpUrl, wsUrl: '' }, 'sse');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await broker.log.append('orders', '1');
    await feed.take(1);
    away = true;
    proxy.closeAllConnections();
    // The link that was lost, and two answers of the proxy.
    await client.untilTold((told) => told.filter((name) => name === 'lost').length >= 3);
    await broker.log.append('orders', '2');
    away = false;
    expect(await feed.take(2)).toEqual([1, 2]);
    expect(feed.errors).toEqual([]);
  }
  const closed = once(proxy, 'close');
  proxy.close();
  proxy.closeAllConnections();
  await closed;
});

test.each(TRANSPORTS)('over %s, a data transformer is no hindrance', async (transport) => {
  const root = initTRPC.create({ transformer: superjson, errorFormatter: withFeedErrors() });
  await using broker = observedBroker();
  const router = root.router({
    feed: root.procedure.subscription(
      brokerFeed(broker, 'orders', {
        ...SIGNED,
        control: true,
        map: (value) => new Date(Number(value)),
      }),
    ),
  });
  await using server = await startServer(router);
  const states: FeedState[] = [];
  const socket = createWSClient({
    url: server.wsUrl,
    lazy: { enabled: true, closeMs: 0 },
    WebSocket: WebSocket as unknown as typeof globalThis.WebSocket,
  });
  const client = createTRPCClient<typeof router>({
    links: [
      feedLink({ store: kept('garbage'), onFeedState: (state) => states.push(state) }),
      transport === 'ws'
        ? wsLink({ client: socket, transformer: superjson })
        : httpSubscriptionLink({ url: server.httpUrl, EventSource, transformer: superjson }),
    ],
  });
  using feed = collect((on) => client.feed.subscribe(undefined, on));
  await broker.meter.until('brokerfeed.feed.resumes fresh', 1);
  await broker.log.append('orders', '7');
  expect(await feed.take(1)).toEqual([new Date(7)]);
  expect(states.slice(0, 2)).toEqual([{ state: 'gap', reason: 'malformed' }, ATTACHED]);
});

test('over sse, a link that is lost is tried again with fresh connection parameters', async () => {
  interface Context {
    readonly url: string;
  }
  const urls: string[] = [];
  const root = initTRPC.context<Context>().create({ errorFormatter: withFeedErrors() });
  await using broker = observedBroker();
  const router = root.router({
    feed: root.procedure
      .use(({ ctx, next }) => {
        urls.push(ctx.url);
        return next();
      })
      .subscription(brokerFeed(broker, 'orders', SIGNED)),
  });
  await using server = await startServer(router, {
    createContext: ({ url = '' }) => ({ url: decodeURIComponent(url) }),
  });
  let credential = 0;
  const client = createTRPCClient<typeof router>({
    links: [
      feedLink({ retry: { baseMs: BASE_MS } }),
      httpSubscriptionLink({
        url: server.httpUrl,
        EventSource,
        connectionParams: () => {
          credential += 1;
          return { credential: String(credential) };
        },
      }),
    ],
  });
  using feed = collect((on) => client.feed.subscribe(undefined, on));
  await broker.meter.attached(1);
  await broker.log.append('orders', '1');
  await feed.take(1);
  server.dropSockets();
  await broker.log.append('orders', '2');
  expect(await feed.take(2)).toEqual([1, 2]);
  expect(urls.map((url) => /"credential":"(\d)"/.exec(url)?.[1])).toEqual(['1', '2']);
});

interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
}

async function temporaryFolder(): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(tmpdir(), 'brokerfeed-client-'));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
