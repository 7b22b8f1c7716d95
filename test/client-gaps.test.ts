import { feedReason, isFeedError } from '@brokerfeed/client';
import type { Broker } from '@brokerfeed/core';
import { memoryStore as brokerStore, type MemoryStore } from '@brokerfeed/core/memory';
import { brokerFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { ATTACHED, connectFeeds, type KeptToken, kept } from './support/feed-client.ts';
import { gate } from './support/gate.ts';
import { observedBroker } from './support/observed.ts';
import { OTHER_SECRET, SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';
import { mintToken } from './support/tokens.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  test("a token past retention: 'restart' tells the gap and goes on live, without that token", async () => {
    const log = brokerStore();
    await using broker = observedBroker({ store: log });
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    const store = await keptAndTrimmed(broker, log);
    const dead = store.token;
    await using client = connectFeeds<typeof router>(server, transport, { store });
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await client.untilTold((told) => told.includes('gap'));
    expect(client.states[0]).toEqual({ state: 'gap', reason: 'trimmed' });
    await broker.meter.until('brokerfeed.feed.resumes fresh', 2);
    await broker.log.append('orders', '"live"');
    expect(await feed.take(1)).toEqual(['live']);
    expect(feed.errors).toEqual([]);
    expect(store.token).toBe(feed.frames[0]?.id);
    expect(store.token).not.toBe(dead);
    expect(broker.meter.of('brokerfeed.feed.resumes trimmed')).toBe(1);
  });

  test("a token past retention: 'error' ends the subscription, and the next one starts afresh", async () => {
    const log = brokerStore();
    await using broker = observedBroker({ store: log });
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    const store = await keptAndTrimmed(broker, log);
    await using client = connectFeeds<typeof router>(server, transport, { store, onGap: 'error' });
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await feed.refusal();
    const [error] = feed.errors;
    expect(isFeedError(error)).toBe(true);
    expect(feedReason(error)).toBe('trimmed');
    using next = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.until('brokerfeed.feed.resumes fresh', 2);
    await broker.log.append('orders', '"live"');
    expect(await next.take(1)).toEqual(['live']);
  });

  test('a token past retention, and a server with a snapshot: it comes once, then what is live', async () => {
    const log = brokerStore();
    await using broker = observedBroker({ store: log });
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, onGap: () => ['snap', 'shot'] }),
      ),
    });
    await using server = await startServer(router);
    const store = await keptAndTrimmed(broker, log);
    await using client = connectFeeds<typeof router>(server, transport, { store });
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await feed.take(2);
    await broker.log.append('orders', '"live"');
    expect(await feed.take(3)).toEqual(['snap', 'shot', 'live']);
    expect(client.states).toEqual([ATTACHED, { state: 'gap', reason: undefined }]);
  });

  test.each(['garbage', 'of another secret'])(
    'a token in the store that is %s recovers by policy',
    async (kind) => {
      await using broker = observedBroker();
      const router = t.router({
        feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
      });
      const token =
        kind === 'garbage'
          ? kind
          : await mintToken(broker, 'orders', { ...SIGNED, secret: OTHER_SECRET });
      await using server = await startServer(router);
      await using client = connectFeeds<typeof router>(server, transport, { store: kept(token) });
      const attached = broker.meter.of('brokerfeed.feed.resumes fresh');
      using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
      await broker.meter.until('brokerfeed.feed.resumes fresh', attached + 1);
      await broker.log.append('orders', '"live"');
      expect(await feed.take(1)).toEqual(['live']);
      const reason = kind === 'garbage' ? 'malformed' : 'signature';
      expect(client.states).toEqual([{ state: 'gap', reason }, ATTACHED]);
      expect(feed.errors).toEqual([]);
    },
  );
});

/** Keeps a token of `orders` that retention has then overtaken. */
async function keptAndTrimmed(broker: Broker, log: MemoryStore): Promise<KeptToken> {
  const token = await mintToken(broker, 'orders');
  for (const value of ['2', '3']) await broker.log.append('orders', value);
  log.trim('orders', 1);
  return kept(token);
}

test('a client that moves to another socket inside a snapshot gets the whole of the one that is made there', async () => {
  await using broker = observedBroker();
  const [opening, rest] = [gate(), gate()];
  const router = t.router({
    feed: t.procedure.subscription(
      brokerFeed(
        broker,
        async () => {
          await opening.pass();
          return 'orders';
        },
        {
          ...SIGNED,
          onGap: async function* () {
            yield* [0, 1, 2];
            await rest.pass();
            yield* [3, 4, 5];
          },
        },
      ),
    ),
  });
  await using server = await startServer(router);
  await using client = connectFeeds<typeof router>(server, 'ws', { store: kept('no token') });
  const board: unknown[] = [];
  let told = 0;
  rest.close();
  using feed = collect((on) =>
    client.trpc.feed.subscribe(undefined, {
      ...on,
      onData(frame) {
        // As a consumer does that is told of a gap.
        if (client.told.length > told) board.length = 0;
        told = client.told.length;
        board.push(frame.data);
        on.onData(frame);
      },
    }),
  );
  await feed.take(2);
  opening.close();
  server.broadcastReconnect();
  await opening.reached;
  // The first socket serves it until the second one stands.
  rest.open();
  await feed.take(6);
  opening.open();
  await feed.take(12);
  expect(board).toEqual([0, 1, 2, 3, 4, 5]);
  expect(client.told).toEqual(['attached', 'gap', 'gap']);
});
