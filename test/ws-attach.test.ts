import { brokerFeed } from '@brokerfeed/trpc';
import { attachFeeds } from '@brokerfeed/trpc/ws';
import { type AnyTRPCRouter, initTRPC } from '@trpc/server';
import { applyWSSHandler, getWSConnectionHandler } from '@trpc/server/adapters/ws';
import { describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startWsServer, type WsServerOptions } from './support/ws-server.ts';

const PUSHED = 'brokerfeed.feed.pushed';

function feedRouter(broker: ObservedBroker) {
  return t.router({
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    echo: t.procedure.query(() => 'here'),
  });
}

/** Subscribes, appends, and waits until all has come. */
async function run(
  broker: ObservedBroker,
  router: AnyTRPCRouter,
  options: WsServerOptions,
  path = '',
): Promise<void> {
  await using server = await startWsServer(router, options);
  await using client = await RawClient.open(`${server.url}${path}`);
  client.subscribe(1, 'feed');
  await client.started(1);
  for (let n = 0; n < 50; n += 1) await broker.log.append('orders', String(n));
  expect(await client.take(1, 50)).toEqual([...Array(50).keys()]);
}

describe('a feed is pushed', () => {
  test.each(['before', 'after'] as const)('attached %s applyWSSHandler', async (order) => {
    await using broker = observedBroker();
    await run(broker, feedRouter(broker), { order });
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('beside getWSConnectionHandler, on a server of yours', async () => {
    await using broker = observedBroker();
    const router = feedRouter(broker);
    await run(broker, router, {
      apply: (wss) => {
        wss.on('connection', getWSConnectionHandler({ wss, router }));
      },
    });
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('with keepAlive on', async () => {
    await using broker = observedBroker();
    const keepAlive = { enabled: true, pingMs: 1, pongWaitMs: 60_000 };
    await using server = await startWsServer(feedRouter(broker), { handler: { keepAlive } });
    await using client = await RawClient.open(server.url);
    client.ws.on('message', (data) => {
      if (String(data) === 'PING') client.ws.send('PONG');
    });
    client.subscribe(1, 'feed');
    await client.started(1);
    for (let n = 0; n < 200; n += 1) await broker.log.append('orders', String(n));
    await client.until(() => client.texts.includes('PING'));
    expect(await client.take(1, 200)).toEqual([...Array(200).keys()]);
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('attached twice, it is pushed once', async () => {
    await using broker = observedBroker();
    await run(broker, feedRouter(broker), {
      apply: (wss) => {
        attachFeeds(wss);
        applyWSSHandler({ wss, router: feedRouter(broker) });
      },
    });
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('of every handler of a server that has several, by their prefixes', async () => {
    await using one = observedBroker();
    await using two = observedBroker();
    const apply = (wss: WebSocketServer): void => {
      applyWSSHandler({ wss, router: feedRouter(one), prefix: '/one' });
      applyWSSHandler({ wss, router: feedRouter(two), prefix: '/two' });
    };
    await using server = await startWsServer(feedRouter(one), { apply });
    await using first = await RawClient.open(`${server.url}/one`);
    await using second = await RawClient.open(`${server.url}/two`);
    await using nobodys = await RawClient.open(`${server.url}/three`);
    for (const client of [first, second, nobodys]) client.subscribe(1, 'feed');
    await first.started(1);
    await second.started(1);
    for (const n of [1, 2]) await one.log.append('orders', `"one ${n}"`);
    for (const n of [1, 2]) await two.log.append('orders', `"two ${n}"`);
    expect(await first.take(1, 2)).toEqual(['one 1', 'one 2']);
    expect(await second.take(1, 2)).toEqual(['two 1', 'two 2']);
    expect([one.meter.of(PUSHED), two.meter.of(PUSHED)]).toEqual([1, 1]);
    expect(nobodys.texts).toEqual([]);
  });

  test('of a server whose connections are handed in by hand, without a request', async () => {
    await using broker = observedBroker();
    const router = feedRouter(broker);
    const inner = new WebSocketServer({ noServer: true });
    attachFeeds(inner);
    const handle = getWSConnectionHandler({ wss: inner, router });
    await run(broker, router, {
      attach: false,
      apply: (wss) => {
        wss.on('connection', (ws, request) => {
          inner.emit('connection', ws);
          handle(ws, request);
        });
      },
    });
    expect(broker.meter.of(PUSHED)).toBe(1);
  });
});

test('feeds with different options on one topic and one socket keep what is theirs', async () => {
  await using broker = observedBroker();
  const other = 'another secret of sixteen bytes';
  const router = t.router({
    whole: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    prepared: t.procedure.subscription(
      brokerFeed(broker, 'orders', {
        ...SIGNED,
        secret: other,
        decode: (text) => Number(text),
        prepare: (n) => `prepared ${n}`,
      }),
    ),
    even: t.procedure.subscription(
      brokerFeed(broker, 'orders', { ...SIGNED, filter: (n) => Number(n) % 2 === 0 }),
    ),
    mapped: t.procedure.subscription(
      brokerFeed(broker, 'orders', { ...SIGNED, map: async (n) => (n === 3 ? undefined : { n }) }),
    ),
    bound: t.procedure.subscription(
      brokerFeed(broker, 'orders', { ...SIGNED, bind: () => 'somebody' }),
    ),
  });
  await using server = await startWsServer(router);
  await using client = await RawClient.open(server.url);
  const paths = ['whole', 'prepared', 'even', 'mapped', 'bound'];
  for (const path of paths) client.subscribe(path, path);
  await broker.meter.attached(paths.length);
  for (let n = 0; n < 5; n += 1) await broker.log.append('orders', String(n));
  expect(await client.take('whole', 5)).toEqual([0, 1, 2, 3, 4]);
  expect(await client.take('prepared', 5)).toEqual([0, 1, 2, 3, 4].map((n) => `prepared ${n}`));
  expect(await client.take('even', 3)).toEqual([0, 2, 4]);
  expect(await client.take('mapped', 4)).toEqual([0, 1, 2, 4].map((n) => ({ n })));
  expect(await client.take('bound', 5)).toEqual([0, 1, 2, 3, 4]);
  expect(broker.meter.of(PUSHED)).toBe(paths.length);
  const last = paths.map((path) => client.token(path));
  expect(new Set(last).size).toBe(3);
  expect([last[0], last[0]]).toEqual([last[2], last[3]]);
});

test('other calls on the socket are answered in order with what is pushed', async () => {
  await using broker = observedBroker();
  await using server = await startWsServer(feedRouter(broker));
  await using client = await RawClient.open(server.url);
  client.subscribe('feed', 'feed');
  await client.started('feed');
  let asked = 0;
  for (let n = 0; n < 100; n += 1) {
    await broker.log.append('orders', String(n));
    if (n % 10 === 0) client.send({ id: asked++, method: 'query', params: { path: 'echo' } });
  }
  expect(await client.take('feed', 100)).toEqual([...Array(100).keys()]);
  await client.until(() => client.messages.filter(({ id }) => id !== 'feed').length === asked);
  expect(broker.meter.of(PUSHED)).toBe(1);
});

test.each(['send', 'close'] as const)(
  'what was pushed before the server calls %s arrives before that',
  async (call) => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
      closer: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          map: (value) => {
            // In the turn after that of the other feed, whose frame waits for the end of the round.
            if (value === 'now' && call === 'send') server.sockets[0]?.send('{"id":"sent"}');
            if (value === 'now' && call === 'close') server.sockets[0]?.close();
            return value;
          },
        }),
      ),
    });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    client.subscribe(2, 'closer');
    await client.started(2);
    await broker.log.append('orders', '"open"');
    await client.take(1, 1);
    await client.take(2, 1);
    await broker.meter.until(PUSHED, 2);
    await broker.log.append('orders', '"now"');
    await client.until(
      () => client.of('sent').length > 0 || client.ws.readyState === client.ws.CLOSED,
    );
    expect(client.values(1)).toEqual(['open', 'now']);
    const last = call === 'send' ? client.texts.indexOf('{"id":"sent"}') : client.texts.length;
    expect(client.texts[last - 1]).toContain('"now"');
  },
);

test('options are checked', () => {
  const wss = new WebSocketServer({ noServer: true });
  for (const [options, sentence] of [
    [
      { maxBufferedBytes: 0 },
      /^maxBufferedBytes is a whole number of at least 1, not the number 0/,
    ],
    [{ maxBufferedBytes: 1.5 }, /^maxBufferedBytes is/],
    [{ drainTimeoutMs: -1 }, /^drainTimeoutMs is/],
    [{ drainTimeoutMs: 2 ** 31 }, /^drainTimeoutMs is/],
    [{ slowReader: 'drop' as 'wait' }, /^slowReader is 'wait' or 'disconnect', not /],
  ] as const) {
    expect(() => attachFeeds(wss, options)).toThrow(sentence);
    expect(() => attachFeeds(wss, options)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    );
  }
});

test('a router with no transformer and no error formatter of its own will do', async () => {
  const bare = initTRPC.create();
  await using broker = observedBroker();
  const router = bare.router({
    feed: bare.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
  });
  await run(broker, router, {});
  expect(broker.meter.of(PUSHED)).toBe(1);
});
