import { feedLink } from '@brokerfeed/client';
import { brokerFeed } from '@brokerfeed/trpc';
import { tracked } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS, type Transport } from './support/client.ts';
import { collect } from './support/collector.ts';
import { startStreamServer } from './support/event-streams.ts';
import { type FeedFrames, feedOutput } from './support/feed-output.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

const PUSHED = 'brokerfeed.feed.pushed';

const Order = z.object({ id: z.number(), item: z.string() });
type Order = z.infer<typeof Order>;

/** What clients may see: without the price, and the item as its length. */
const Public = z.object({
  id: z.number(),
  item: z
    .string()
    .min(1)
    .transform((item) => item.length),
});

/** A validator that throws what zod throws. */
const throwing = z.custom<FeedFrames<Order>>().transform(async function* (feed) {
  for await (const [token, order] of feed) yield tracked(token, Public.parse(order));
});

function routerOf(broker: ObservedBroker) {
  const options = { ...SIGNED, decode: (text: string): Order => JSON.parse(text) };
  const feed = () => brokerFeed(broker, 'orders', options);
  return t.router({
    checked: t.procedure.output(feedOutput(Public)).subscription(feed()),
    throwing: t.procedure.output(throwing).subscription(feed()),
    // It is given the iterable, once, and looks at no value.
    whole: t.procedure.output(z.custom<FeedFrames<Order>>()).subscription(feed()),
    schema: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, schema: Public })),
  });
}

type Router = ReturnType<typeof routerOf>;

interface Served extends AsyncDisposable {
  readonly trpc: ReturnType<typeof connect<Router>>['trpc'];
  /** Cuts all connections. */
  cut(): void;
}

/** A stock client of a server with `attachFeeds` or `withFeeds`: feeds are pushed where they can be. */
async function serve(
  router: Router,
  transport: Transport,
  links: Parameters<typeof connect>[2] = [],
): Promise<Served> {
  const overWs = transport === 'ws' ? await startWsServer(router) : undefined;
  const overSse = transport === 'sse' ? await startStreamServer(router) : undefined;
  const urls = { httpUrl: overSse?.httpUrl ?? '', wsUrl: overWs?.url ?? '' };
  const client = connect<Router>(urls, transport, links);
  return {
    trpc: client.trpc,
    cut() {
      for (const ws of overWs?.sockets ?? []) ws.terminate();
      for (const socket of overSse?.sockets.splice(0) ?? []) socket.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const part of [client, overWs, overSse]) await part?.[Symbol.asyncDispose]();
    },
  };
}

async function place(broker: ObservedBroker, ...items: string[]): Promise<void> {
  for (const [id, item] of items.entries()) {
    await broker.log.append('orders', JSON.stringify({ id, item, price: 3 }));
  }
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a validator of each value gives clients what it makes of them, through resumes too', async () => {
    await using broker = observedBroker();
    await using server = await serve(routerOf(broker), transport);
    using feed = collect((on) => server.trpc.checked.subscribe(undefined, on));
    await broker.meter.attached(1);
    await place(broker, 'a', 'bb');
    await feed.take(2);
    server.cut();
    await broker.meter.attached(2);
    await place(broker, 'ccc');
    expect(await feed.take(3)).toEqual([
      { id: 0, item: 1 },
      { id: 1, item: 2 },
      { id: 0, item: 3 },
    ]);
    expect(feed.errors).toEqual([]);
    // Somebody stands between the feed and the connection.
    expect(broker.meter.of(PUSHED)).toBe(0);
    feed.unsubscribe();
    await broker.untilReads(0);
  });

  test('a value that it refuses ends the feed with 422, after those before it', async () => {
    await using broker = observedBroker();
    await using server = await serve(routerOf(broker), transport);
    using feed = collect((on) => server.trpc.checked.subscribe(undefined, on));
    await broker.meter.attached(1);
    await place(broker, 'a', '', 'ccc');
    expect(await feed.refusal()).toMatchObject({ code: 'UNPROCESSABLE_CONTENT', httpStatus: 422 });
    expect(feed.values).toEqual([{ id: 0, item: 1 }]);
    await broker.untilReads(0);
    expect(broker.meter.of('brokerfeed.feed.resumes')).toBe(1);
  });

  test('what a validator throws by itself is 500: the end over WebSockets, tried again for ever over SSE', async () => {
    await using broker = observedBroker();
    await using server = await serve(routerOf(broker), transport);
    using feed = collect((on) => server.trpc.throwing.subscribe(undefined, on));
    await broker.meter.attached(1);
    await place(broker, 'a', '', 'ccc');
    if (transport === 'ws') {
      expect(await feed.refusal()).toMatchObject({ httpStatus: 500 });
      expect(broker.meter.of('brokerfeed.feed.resumes')).toBe(1);
    } else {
      // Each try comes to the same value.
      await broker.meter.attached(4);
      expect(feed.errors).toEqual([]);
      expect(feed.stateErrors[0]?.data).toMatchObject({ httpStatus: 500 });
    }
    expect(feed.values).toEqual([{ id: 0, item: 1 }]);
    feed.unsubscribe();
    await broker.untilReads(0);
  });

  test('with `feedLink` that 500 ends the feed over WebSockets, and over SSE after as many tries as it may have', async () => {
    await using broker = observedBroker();
    const link = feedLink({ retry: { baseMs: 1, tries: 3 } });
    await using server = await serve(routerOf(broker), transport, [link]);
    using feed = collect((on) => server.trpc.throwing.subscribe(undefined, on));
    await broker.meter.attached(1);
    await place(broker, 'a', '', 'ccc');
    await feed.refusal();
    expect(feed.values).toEqual([{ id: 0, item: 1 }]);
    await broker.untilReads(0);
  });

  test('a validator of the iterable alone is no wrapper: the feed is pushed, and no value is looked at', async () => {
    await using broker = observedBroker();
    await using server = await serve(routerOf(broker), transport);
    using feed = collect((on) => server.trpc.whole.subscribe(undefined, on));
    await broker.meter.attached(1);
    await place(broker, 'a', '');
    expect(await feed.take(2)).toEqual([
      { id: 0, item: 'a', price: 3 },
      { id: 1, item: '', price: 3 },
    ]);
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('`schema` makes the same values, pushed, and leaves out what it refuses', async () => {
    await using broker = observedBroker();
    await using server = await serve(routerOf(broker), transport);
    using feed = collect((on) => server.trpc.schema.subscribe(undefined, on));
    await broker.meter.attached(1);
    await place(broker, 'a', '', 'ccc');
    expect(await feed.take(2)).toEqual([
      { id: 0, item: 1 },
      { id: 2, item: 3 },
    ]);
    expect(broker.meter.of(PUSHED)).toBe(1);
    expect(broker.meter.of('brokerfeed.feed.refused decode')).toBe(1);
  });
});
