import { memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { initTRPC } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';
import { EventReader } from './support/event-streams.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { SIGNED } from './support/router.ts';
import {
  type AdapterContext,
  type AdapterServer,
  type SseAdapter,
  startAdapterServer,
} from './support/sse-adapters.ts';
import { mintToken } from './support/tokens.ts';

const PUSHED = 'brokerfeed.feed.pushed';
const PAUSED = 'brokerfeed.feed.paused';

const t = initTRPC.context<AdapterContext>().create({ errorFormatter: withFeedErrors() });

function routerOf(broker: ObservedBroker) {
  return t.router({
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    mine: t.procedure.subscription(
      brokerFeed(broker, 'orders', {
        ...SIGNED,
        map: (value, _entry, { ctx }) => [ctx.user, value],
      }),
    ),
  });
}

type Router = ReturnType<typeof routerOf>;

interface Case {
  readonly adapter: SseAdapter;
  /** With `withFeeds` around the options. */
  readonly feeds: boolean;
  /** What comes of that. */
  readonly carried: 'pushed' | 'pulled';
}

const CASES: readonly Case[] = [
  { adapter: 'standalone', feeds: false, carried: 'pulled' },
  { adapter: 'standalone', feeds: true, carried: 'pushed' },
  { adapter: 'express', feeds: false, carried: 'pulled' },
  { adapter: 'express', feeds: true, carried: 'pushed' },
  { adapter: 'fastify', feeds: false, carried: 'pulled' },
  { adapter: 'fastify', feeds: true, carried: 'pushed' },
  { adapter: 'fetch', feeds: false, carried: 'pulled' },
  // It has no Node response to write to.
  { adapter: 'fetch', feeds: true, carried: 'pulled' },
];

async function append(broker: ObservedBroker, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += 1) await broker.log.append('orders', String(n));
}

function count(to: number): readonly number[] {
  return Array.from({ length: to }, (_, n) => n);
}

function cut({ sockets }: AdapterServer): void {
  for (const socket of sockets.splice(0)) socket.destroy();
}

function trpcUrl({ httpUrl }: AdapterServer, path: string, lastEventId?: string): string {
  const input = lastEventId === undefined ? '' : JSON.stringify({ lastEventId });
  return `${httpUrl}/${path}${input && `?input=${encodeURIComponent(input)}`}`;
}

describe.each(CASES)('$adapter, withFeeds: $feeds', ({ adapter, feeds, carried }) => {
  test('a stock client that is cut off resumes, and misses, repeats and reorders nothing', async () => {
    await using broker = observedBroker();
    const router = routerOf(broker);
    await using server = await startAdapterServer(adapter, router, feeds);
    await using client = connect<Router>(server, 'sse');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await append(broker, 0, 20);
    await feed.take(20);
    for (let cuts = 1; cuts <= 3; cuts += 1) {
      const appended = cuts * 20;
      cut(server);
      await append(broker, appended, appended + 10);
      await broker.meter.attached(1 + cuts);
      await append(broker, appended + 10, appended + 20);
      await feed.take(appended + 20);
    }
    expect(feed.values).toEqual(count(80));
    expect(new Set(feed.frames.map(({ id }) => id)).size).toBe(80);
    expect([feed.errors, feed.completed]).toEqual([[], false]);
    expect(broker.meter.of(PUSHED)).toBe(carried === 'pushed' ? 4 : 0);
  });

  test('the context is made of the request', async () => {
    await using broker = observedBroker();
    await using server = await startAdapterServer(adapter, routerOf(broker), feeds);
    await using reader = await EventReader.open(trpcUrl(server, 'mine'), { 'x-user': 'ann' });
    await broker.meter.attached(1);
    await append(broker, 0, 2);
    expect(await reader.take(2)).toEqual([
      ['ann', 0],
      ['ann', 1],
    ]);
    expect(reader.status).toBe(200);
    expect(reader.headers['content-type']).toBe('text/event-stream');
  });

  test('a token that is none of ours is 400, one that was trimmed is 410, and both end the feed', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    const trimmed = await mintToken(broker, 'orders');
    await append(broker, 0, 3);
    store.trim('orders', 1);
    const router = routerOf(broker);
    await using server = await startAdapterServer(adapter, router, feeds);
    await using client = connect<Router>(server, 'sse');
    const refusal = async (lastEventId: string) => {
      // The first id travels in the input, as a client with a store has it.
      const input = { lastEventId } as unknown as undefined;
      using feed = collect((on) => client.trpc.feed.subscribe(input, on));
      return await feed.refusal();
    };
    expect(await refusal('none of ours')).toMatchObject({
      httpStatus: 400,
      feed: { status: 400, reason: 'malformed' },
    });
    expect(await refusal(trimmed)).toMatchObject({
      httpStatus: 410,
      feed: { status: 410, reason: 'trimmed' },
    });
    await broker.untilReads(0);
  });

  test.each(['unsubscribes', 'is cut off'])(
    'a client that %s leaves nothing behind',
    async (how) => {
      await using broker = observedBroker();
      await using server = await startAdapterServer(adapter, routerOf(broker), feeds);
      await using client = connect<Router>(server, 'sse');
      using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
      await using waiting = await EventReader.open(trpcUrl(server, 'mine'));
      await broker.meter.attached(2);
      await append(broker, 0, 1);
      await feed.take(1);
      await waiting.take(1);
      expect(broker.reads).toBe(1);
      if (how === 'unsubscribes') {
        feed.unsubscribe();
        await waiting[Symbol.asyncDispose]();
      } else {
        await client[Symbol.asyncDispose]();
        cut(server);
      }
      await broker.untilReads(0);
      await append(broker, 1, 2);
      expect([feed.values, feed.errors]).toEqual([[0], []]);
      expect(broker.reads).toBe(0);
    },
  );

  test('a reader that pauses costs the server little, and then gets everything in order', async () => {
    const valueBytes = 64 * 1024;
    const entries = 160;
    // The two ends of the network take some megabytes, whatever the server holds.
    const takenAtMost = 128;
    await using broker = observedBroker();
    const taken = new Map<string, number>();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          highWaterMark: 32,
          map: (value, _entry, { ctx: { user } }) => {
            taken.set(user, (taken.get(user) ?? 0) + 1);
            return value;
          },
        }),
      ),
    });
    await using server = await startAdapterServer(adapter, router, feeds);
    const open = (user: string) => EventReader.open(trpcUrl(server, 'feed'), { 'x-user': user });
    await using paused = await open('paused');
    await using other = await open('other');
    await broker.meter.attached(2);
    paused.pause();
    const padding = 'x'.repeat(valueBytes);
    for (let n = 0; n < entries; n += 1) {
      await broker.log.append('orders', JSON.stringify(`${n} ${padding}`));
      // Whoever reads on is not held up. And the one that does not had its turns meanwhile.
      await other.bytes((n + 1) * valueBytes);
    }
    expect(taken.get('other')).toBe(entries);
    expect(taken.get('paused')).toBeLessThan(takenAtMost);
    if (carried === 'pushed') await broker.meter.until(PAUSED, 1);
    paused.resume();
    for (let n = 0; n < entries; n += 1) await paused.bytes((n + 1) * valueBytes);
    await paused.take(entries);
    const numbers = paused.values.map((value) => Number.parseInt(String(value), 10));
    expect(numbers).toEqual(count(entries));
    expect(broker.meter.of(PUSHED)).toBe(carried === 'pushed' ? 2 : 0);
  });
});

describe.each(CASES.filter(({ carried }) => carried === 'pushed'))(
  '$adapter',
  ({ adapter, feeds }) => {
    test('a drain moves its client, which misses nothing', async () => {
      await using broker = observedBroker();
      const router = routerOf(broker);
      await using server = await startAdapterServer(adapter, router, feeds);
      await using client = connect<Router>(server, 'sse');
      using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
      await broker.meter.attached(1);
      await append(broker, 0, 5);
      await feed.take(5);
      const drained = server.feeds?.drain({ overMs: 1, graceMs: 60_000 });
      await append(broker, 5, 10);
      await broker.meter.attached(2);
      await append(broker, 10, 15);
      expect(await feed.take(15)).toEqual(count(15));
      expect([feed.errors, feed.completed]).toEqual([[], false]);
      await client[Symbol.asyncDispose]();
      expect(await drained).toMatchObject({ closed: 0 });
    });
  },
);
