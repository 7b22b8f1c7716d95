import { BrokerError } from '@brokerfeed/core';
import { memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed } from '@brokerfeed/trpc';
import { tracked } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { gate } from './support/gate.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';
import { mintToken } from './support/tokens.ts';

const resumable = t.procedure.input(z.object({ lastEventId: z.string().optional() }));
const GARBAGE = { lastEventId: 'garbage' };

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a tracked() snapshot, a text and an object are one value each; an array, a set and a generator are streamed', async () => {
    await using broker = observedBroker();
    const feedOf = (onGap: () => unknown) =>
      resumable.subscription(brokerFeed(broker, 'orders', { ...SIGNED, onGap }));
    const router = t.router({
      tracked: feedOf(() => tracked('own id', { n: 1 })),
      text: feedOf(() => 'abc'),
      object: feedOf(() => ({ n: 1 })),
      promise: feedOf(async () => ({ n: 1 })),
      array: feedOf(() => [1, 2]),
      set: feedOf(() => new Set([1, 2])),
      generator: feedOf(async function* () {
        yield tracked('own id', 1);
        yield 2;
      }),
      nothing: feedOf(() => undefined),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const expected = {
      tracked: [{ n: 1 }],
      text: ['abc'],
      object: [{ n: 1 }],
      promise: [{ n: 1 }],
      array: [1, 2],
      set: [1, 2],
      generator: [1, 2],
      nothing: [],
    };
    for (const kind of Object.keys(expected) as (keyof typeof expected)[]) {
      const before = broker.meter.of('brokerfeed.feed.snapshots');
      using feed = collect((on) => client.trpc[kind].subscribe(GARBAGE, on));
      await broker.meter.until('brokerfeed.feed.snapshots', before + 1);
      await broker.log.append('orders', '"live"');
      const values = [...expected[kind], 'live'];
      expect(await feed.take(values.length), kind).toEqual(values);
      feed.unsubscribe();
      await broker.untilReads(0);
    }
  });

  test('an entry appended while the snapshot is made comes after it, and one that is in it may come again', async () => {
    await using broker = observedBroker();
    const database: unknown[] = [];
    const gaps: unknown[] = [];
    const place = async (value: number): Promise<void> => {
      database.push(value);
      await broker.log.append('orders', String(value));
    };
    const router = t.router({
      feed: resumable.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          onGap: async ({ gap }) => {
            gaps.push(gap);
            await place(1);
            const snapshot = { orders: [...database] };
            await place(2);
            return snapshot;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(GARBAGE, on));
    await feed.take(1);
    await place(3);
    expect(await feed.take(4)).toEqual([{ orders: [1] }, 1, 2, 3]);
    expect(gaps).toEqual([{ reason: 'malformed', status: 400, lastEventId: 'garbage' }]);
  });

  test('a slow reader that retention overtakes gets a snapshot, then what is live', async () => {
    await using broker = observedBroker({ retention: { maxEntries: 2 } });
    const gaps: unknown[] = [];
    const slow = gate();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          highWaterMark: 1,
          map: async (value) => {
            await slow.pass();
            return value;
          },
          onGap: ({ gap }) => {
            gaps.push(gap.reason);
            return 'snapshot';
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    slow.close();
    await broker.log.append('orders', '1');
    await slow.reached;
    for (const value of ['2', '3', '4', '5']) await broker.log.append('orders', value);
    slow.open();
    await feed.take(2);
    await broker.log.append('orders', '6');
    expect(await feed.take(3)).toEqual([1, 'snapshot', 6]);
    expect(gaps).toEqual(['trimmed']);
  });

  test('without onGap, a reader that retention overtakes ends with a 410', async () => {
    await using broker = observedBroker({ retention: { maxEntries: 2 } });
    const slow = gate();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          highWaterMark: 1,
          map: async (value) => {
            await slow.pass();
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
    await broker.log.append('orders', '1');
    await slow.reached;
    for (const value of ['2', '3', '4', '5']) await broker.log.append('orders', value);
    slow.open();
    expect(await feed.refusal()).toMatchObject({
      httpStatus: 410,
      feed: { status: 410, reason: 'trimmed' },
    });
    expect(feed.values).toEqual([1]);
    await broker.untilReads(0);
  });

  test('a topic deleted under a quiet feed is a gap, and what is written to the new one comes after the snapshot', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, onGap: ({ gap }) => gap.reason }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    store.drop('orders');
    await feed.take(1);
    await broker.log.append('orders', '1');
    expect(await feed.take(2)).toEqual(['epoch', 1]);
  });

  test('an outage is no gap: it ends with a 503 and makes no snapshot', async () => {
    await using broker = observedBroker();
    let snapshots = 0;
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          retryDelaysMs: [],
          onGap: () => {
            snapshots += 1;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    broker.breakReads(new BrokerError('UNAVAILABLE', 'connection lost'));
    await feed.until(({ errors, stateErrors }) =>
      [...errors, ...stateErrors].some((e) => e.data?.feed),
    );
    const error = [...feed.errors, ...feed.stateErrors].find((e) => e.data?.feed);
    expect(error?.data?.feed).toEqual({ status: 503, reason: 'unavailable' });
    expect(snapshots).toBe(0);
  });

  test('a snapshot that is always overtaken ends with a 503 after a few, in place of a loop', async () => {
    await using broker = observedBroker({ retention: { maxEntries: 1 } });
    let snapshots = 0;
    const router = t.router({
      feed: resumable.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          highWaterMark: 1,
          onGap: async () => {
            snapshots += 1;
            for (const value of ['1', '2', '3']) await broker.log.append('orders', value);
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(GARBAGE, on));
    await feed.until(({ errors, stateErrors }) =>
      [...errors, ...stateErrors].some((e) => e.data?.feed),
    );
    feed.unsubscribe();
    const error = [...feed.errors, ...feed.stateErrors].find((e) => e.data?.feed);
    expect(error?.data?.feed).toEqual({ status: 503, reason: 'unavailable' });
    expect(snapshots).toBeLessThanOrEqual(10);
  });

  test('onGap that throws ends the feed with what it threw, and leaves no read behind', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: resumable.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          onGap: () => {
            throw new Error('no database');
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(GARBAGE, on));
    await feed.until(({ errors, stateErrors }) => errors.length + stateErrors.length > 0);
    feed.unsubscribe();
    expect([...feed.errors, ...feed.stateErrors][0]?.data?.httpStatus).toBe(500);
    await broker.untilReads(0);
    expect(broker.started).toBeGreaterThan(0);
  });

  test('a client that leaves while its snapshot is made leaves no read behind', async () => {
    await using broker = observedBroker();
    let asked = 0;
    let tellClosed = (): void => {};
    const closed = new Promise<void>((resolve) => {
      tellClosed = resolve;
    });
    const router = t.router({
      stuck: resumable.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          onGap: () => {
            asked += 1;
            return new Promise<undefined>(() => {});
          },
        }),
      ),
      streamed: resumable.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          async *onGap() {
            try {
              // Never waits: the process must have its turns all the same.
              for (let n = 0; ; n += 1) yield n;
            } finally {
              tellClosed();
            }
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using stuck = collect((on) => client.trpc.stuck.subscribe(GARBAGE, on));
    await broker.meter.until('brokerfeed.feed.snapshots', 1);
    await broker.untilReads(1);
    expect(asked).toBe(1);
    stuck.unsubscribe();
    await broker.untilReads(0);
    using streamed = collect((on) => client.trpc.streamed.subscribe(GARBAGE, on));
    await streamed.take(3);
    streamed.unsubscribe();
    await broker.untilReads(0);
    await closed;
  });

  test('entries that the filter leaves out move the position on: idle refreshes keep a quiet client from a gap', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          control: { idleMs: 20 },
          filter: (value) => value === 'mine',
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await feed.take(2);
    for (let n = 0; n < 20; n += 1) await broker.log.append('orders', String(n));
    const tip = await mintToken(broker, 'orders');
    expect(tip).not.toBe(feed.frames[0]?.id);
    await feed.until(({ values }) => values.length >= 3);
    store.trim('orders', 0);
    server.dropSockets();
    await feed.until(({ values }) => values.filter(isAttached).length === 2);
    await broker.log.append('orders', '"mine"');
    await feed.until(({ values }) => values.includes('mine'));
    expect(feed.errors).toEqual([]);
    expect(broker.meter.of('brokerfeed.feed.resumes trimmed')).toBe(0);
  });

  test('after a live read broke, entries that were skipped before are not looked at again', async () => {
    await using broker = observedBroker();
    const looked: unknown[] = [];
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          retryDelaysMs: [1, 1, 1, 1, 1],
          map: (value) => {
            looked.push(value);
            return value === 3 ? value : undefined;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await broker.log.append('orders', ['1', '2']);
    await broker.untilReads(1);
    broker.breakReads(new BrokerError('UNAVAILABLE', 'connection lost'));
    await broker.meter.until('brokerfeed.tail.restarts', 1);
    broker.breakReads(undefined);
    await broker.log.append('orders', '3');
    expect(await feed.take(1)).toEqual([3]);
    expect(looked).toEqual([1, 2, 3]);
  });
});

function isAttached(value: unknown): boolean {
  return (value as { feed?: unknown }).feed === 'attached';
}
