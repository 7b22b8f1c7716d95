import { memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('subscribers of one topic share its read and its signatures, and each gets values of its own', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.input(z.object({ name: z.string() })).subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          decode: (text): { n: number; seenBy: string[] } => ({ n: Number(text), seenBy: [] }),
          map: (value, _entry, { input }) => {
            // A callback that writes on what it is given must not reach the others.
            value.seenBy.push(input.name);
            return value;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const names = ['a', 'b', 'c', 'd', 'e'];
    const feeds = names.map((name) => collect((on) => client.trpc.feed.subscribe({ name }, on)));
    await broker.meter.attached(5);
    const signed = broker.meter.of('brokerfeed.feed.signatures');
    for (let n = 0; n < 10; n += 1) await broker.log.append('orders', String(n));
    for (const [at, feed] of feeds.entries()) {
      expect(await feed.take(10)).toEqual(
        Array.from({ length: 10 }, (_, n) => ({ n, seenBy: [names[at]] })),
      );
      expect(feed.frames.map((frame) => frame.id)).toEqual(
        feeds[0]?.frames.map((frame) => frame.id),
      );
    }
    expect(broker.started).toBe(1);
    expect(broker.meter.of('brokerfeed.feed.signatures') - signed).toBe(10);
    for (const feed of feeds) feed.unsubscribe();
  });

  test('whoever catches up, on whichever instance, gets the tokens that live subscribers got', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    await using peer = observedBroker({ store });
    const router = t.router({
      live: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
      late: t.procedure.subscription(brokerFeed(peer, 'orders', { ...SIGNED, from: 'earliest' })),
      other: t.procedure.subscription(
        brokerFeed(peer, 'invoices', { ...SIGNED, from: 'earliest' }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using live = collect((on) => client.trpc.live.subscribe(undefined, on));
    await broker.meter.attached(1);
    for (let n = 0; n < 300; n += 1) {
      await broker.log.append('orders', [String(n), String(-n)]);
      await broker.log.append('invoices', [String(n), String(-n)]);
    }
    await live.take(600);
    using late = collect((on) => client.trpc.late.subscribe(undefined, on));
    await late.take(600);
    const ids = (feed: typeof live): string[] => feed.frames.map((frame) => frame.id);
    expect(ids(late)).toEqual(ids(live));
    expect(new Set(ids(live)).size).toBe(600);
    using other = collect((on) => client.trpc.other.subscribe(undefined, on));
    await other.take(600);
    expect(ids(other).filter((id) => new Set(ids(live)).has(id))).toEqual([]);
  });

  test('a topic with no subscriber is not read, and its entries are not decoded or signed', async () => {
    await using broker = observedBroker();
    let decoded = 0;
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          decode: (text) => {
            decoded += 1;
            return text;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    for (let n = 0; n < 10; n += 1) await broker.log.append('orders', String(n));
    expect([broker.started, decoded]).toEqual([0, 0]);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    feed.unsubscribe();
    await broker.untilReads(0);
    for (let n = 0; n < 10; n += 1) await broker.log.append('orders', String(n));
    expect([broker.started, decoded, broker.meter.of('brokerfeed.feed.signatures')]).toEqual([
      1, 0, 0,
    ]);
  });

  test('whoever joins a running read starts where it stands, not where it began', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using first = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    for (let n = 0; n < 5; n += 1) await broker.log.append('orders', String(n));
    await first.take(5);
    using second = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(2);
    await broker.log.append('orders', '5');
    expect(await second.take(1)).toEqual([5]);
    expect(await first.take(6)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(broker.started).toBe(1);
  });

  test('tenants of one procedure get the topic that is theirs', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .input(z.object({ tenant: z.string() }))
        .subscription(brokerFeed(broker, async ({ input }) => `orders.${input.tenant}`, SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const tenants = ['a', 'a*', 'room:*', '../x', 'a b', 'ü'];
    const feeds = tenants.map((tenant) =>
      collect((on) => client.trpc.feed.subscribe({ tenant }, on)),
    );
    await broker.meter.attached(tenants.length);
    for (const tenant of tenants)
      await broker.log.append(`orders.${tenant}`, JSON.stringify(tenant));
    for (const [at, feed] of feeds.entries()) expect(await feed.take(1)).toEqual([tenants[at]]);
    for (const tenant of tenants)
      await broker.log.append(`orders.${tenant}`, JSON.stringify(`${tenant}!`));
    for (const [at, feed] of feeds.entries()) {
      expect(await feed.take(2)).toEqual([tenants[at], `${tenants[at]}!`]);
      feed.unsubscribe();
    }
  });
});
