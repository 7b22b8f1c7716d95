import { memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed, feedInput } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { gate } from './support/gate.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a client that comes back to another instance misses and repeats nothing', async () => {
    const store = memoryStore();
    await using a = observedBroker({ store });
    await using b = observedBroker({ store });
    const routerOf = (broker: typeof a) =>
      t.router({ feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)) });
    const router = routerOf(a);
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await a.meter.attached(1);
    await a.log.append('orders', ['1', '2']);
    await feed.take(2);
    await server.restart(routerOf(b));
    await b.log.append('orders', '3');
    await a.log.append('orders', '4');
    await feed.take(4);
    await b.log.append('orders', '5');
    expect(await feed.take(5)).toEqual([1, 2, 3, 4, 5]);
    expect(feed.errors).toEqual([]);
  });

  const inputs = {
    'no input parser': () => t.procedure,
    'a parser that strips unknown keys': () => t.procedure.input(z.object({ room: z.string() })),
    'a parser that passes the id': () =>
      t.procedure.input(z.object({ room: z.string(), lastEventId: z.string().nullish() })),
    'a strict parser behind feedInput()': () =>
      t.procedure.concat(feedInput()).input(z.strictObject({ room: z.string() })),
  };
  test.each(Object.keys(inputs) as (keyof typeof inputs)[])(
    'a client resumes through %s',
    async (kind) => {
      await using broker = observedBroker();
      // The four builders differ in type; what they have in common is the subscription that is asked for below.
      const procedure = inputs[kind]() as ReturnType<
        (typeof inputs)['a parser that strips unknown keys']
      >;
      const router = t.router({
        feed: procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
      });
      await using server = await startServer(router);
      await using client = connect<typeof router>(server, transport);
      using feed = collect((on) => client.trpc.feed.subscribe({ room: 'a' }, on));
      await broker.meter.attached(1);
      await broker.log.append('orders', '1');
      await feed.take(1);
      server.dropSockets();
      await broker.log.append('orders', '2');
      expect(await feed.take(2)).toEqual([1, 2]);
      expect(broker.meter.of('brokerfeed.feed.resumes resumed')).toBe(1);
    },
  );

  test.each([['a text'], [['an', 'array']], [7]])(
    'an input that cannot carry an id (%j) is refused at once',
    async (input) => {
      await using broker = observedBroker();
      const router = t.router({
        // What a JavaScript caller can do: the types refuse it.
        feed: t.procedure.input(z.any()).subscription(brokerFeed(broker, 'orders', SIGNED)),
      });
      await using server = await startServer(router);
      await using client = connect<typeof router>(server, transport);
      using feed = collect((on) => client.trpc.feed.subscribe(input, on));
      expect(await feed.refusal()).toMatchObject({
        httpStatus: 400,
        feed: { status: 400, reason: 'topic' },
      });
    },
  );

  test('a client may bring a token in its input, and a newer one that it got goes before it', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .input(z.object({ lastEventId: z.string().optional() }))
        .subscription(brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    for (const value of ['1', '2', '3']) await broker.log.append('orders', value);
    using first = collect((on) => client.trpc.feed.subscribe({}, on));
    await first.take(3);
    const [frame] = first.frames;
    using second = collect((on) => client.trpc.feed.subscribe({ lastEventId: frame?.id }, on));
    expect(await second.take(2)).toEqual([2, 3]);
    server.dropSockets();
    await broker.log.append('orders', '4');
    expect(await second.take(3)).toEqual([2, 3, 4]);
  });

  test('every frame is tracked, in a snapshot and of control too, and no two have one id', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .input(z.object({ lastEventId: z.string() }))
        .subscription(
          brokerFeed(broker, 'orders', { ...SIGNED, control: true, onGap: () => ['a', 'b', 'c'] }),
        ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId: 'garbage' }, on));
    await feed.take(5);
    await broker.log.append('orders', ['1', '2']);
    const [begin, end] = [{ feed: 'catching-up' }, { feed: 'live' }];
    expect(await feed.take(7)).toEqual([begin, 'a', 'b', 'c', end, 1, 2]);
    const ids = feed.frames.map((frame) => frame.id);
    expect(ids.every((id) => id.length > 0 && id.length <= 64)).toBe(true);
    expect(new Set(ids).size).toBe(7);
  });

  test('a client that lost its connection inside a snapshot gets the whole snapshot again', async () => {
    await using broker = observedBroker();
    let loads = 0;
    const rest = gate();
    rest.close();
    const router = t.router({
      feed: t.procedure.input(z.object({ lastEventId: z.string() })).subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          async *onGap() {
            loads += 1;
            yield 'a';
            yield 'b';
            // The first time the rest does not come.
            if (loads === 1) await rest.pass();
            yield 'c';
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId: 'garbage' }, on));
    await feed.take(1);
    server.dropSockets();
    await feed.take(4);
    rest.open();
    await broker.log.append('orders', '1');
    expect(await feed.take(5)).toEqual(['a', 'a', 'b', 'c', 1]);
    expect(loads).toBe(2);
  });

  test('a client that saw a whole snapshot resumes from its position: no entry is lost, no snapshot made again', async () => {
    await using broker = observedBroker();
    let loads = 0;
    const router = t.router({
      feed: t.procedure.input(z.object({ lastEventId: z.string() })).subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          onGap: () => {
            loads += 1;
            return ['a', 'b'];
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId: 'garbage' }, on));
    await feed.take(2);
    server.dropSockets();
    // Before its first live entry: tRPC's WebSocket client has only the id of the snapshot's last frame to come back with.
    await broker.log.append('orders', '1');
    expect(await feed.take(3)).toEqual(['a', 'b', 1]);
    expect(loads).toBe(1);
  });

  test('with control frames, a client that drops before its first entry loses nothing', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, control: true })),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    expect(await feed.take(2)).toEqual([{ feed: 'attached' }, { feed: 'live' }]);
    server.dropSockets();
    await broker.log.append('orders', '1');
    await feed.until(({ values }) => values.includes(1));
    // Whether it was appended before the client came back is not known here.
    expect(feed.values.slice(2, 3)).toEqual([{ feed: 'attached' }]);
    await feed.until(({ values }) => values.slice(3).some(isLive));
    expect(feed.values.filter(Number.isInteger)).toEqual([1]);
  });

  test('a client dropped inside a commit gets that commit again, from its start', async () => {
    await using broker = observedBroker();
    const slow = gate();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          map: async (value) => {
            if (value === 3) await slow.pass();
            return value;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    slow.close();
    await broker.log.append('orders', ['1', '2', '3', '4']);
    await feed.take(2);
    server.dropSockets();
    slow.open();
    expect(await feed.take(6)).toEqual([1, 2, 1, 2, 3, 4]);
    // The repeats have the ids of the first time: that is how they are told.
    const ids = feed.frames.map((frame) => frame.id);
    expect(ids.slice(2, 4)).toEqual(ids.slice(0, 2));
  });

  test('a client far behind is given all of several pages, then what is live', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest', highWaterMark: 8 }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    for (let n = 0; n < 600; n += 1) await broker.log.append('orders', String(n));
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await feed.take(1);
    await broker.log.append('orders', '600');
    expect(await feed.take(601)).toEqual(Array.from({ length: 601 }, (_, n) => n));
  });
});

test('over ws, a server that asks its clients to move loses, repeats and reorders nothing', async () => {
  await using broker = observedBroker();
  const router = t.router({ feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)) });
  await using server = await startServer(router);
  await using client = connect<typeof router>(server, 'ws');
  using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
  await broker.meter.attached(1);
  await broker.log.append('orders', '0');
  await feed.take(1);
  // The client runs the old socket and the new one side by side and drops repeats by the text of their ids.
  server.broadcastReconnect();
  for (let n = 1; n <= 50; n += 1) await broker.log.append('orders', String(n));
  await broker.meter.attached(2);
  await broker.log.append('orders', '51');
  await feed.until(({ values }) => values.includes(51));
  expect(feed.values).toEqual(Array.from({ length: 52 }, (_, n) => n));
  expect(feed.errors).toEqual([]);
});

test('over sse, the header of a reconnect goes before the id in the url', async () => {
  await using broker = observedBroker();
  const router = t.router({
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })),
  });
  await using server = await startServer(router);
  await using client = connect<typeof router>(server, 'sse');
  for (const value of ['1', '2', '3']) await broker.log.append('orders', value);
  using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
  await feed.take(3);
  const [older, newer] = feed.frames;
  const left = new AbortController();
  const url = `${server.httpUrl}/feed?input=${encodeURIComponent(JSON.stringify({ lastEventId: older?.id }))}`;
  const response = await fetch(url, {
    headers: { 'last-event-id': newer?.id ?? '' },
    signal: left.signal,
  });
  expect(response.status).toBe(200);
  let text = '';
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    if (text.includes('\ndata: ')) break;
  }
  left.abort();
  expect(text).toMatch(/\ndata: 3\n/);
});

function isLive(value: unknown): boolean {
  return (value as { feed?: unknown }).feed === 'live';
}
