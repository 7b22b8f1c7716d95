import type { Clock } from '@brokerfeed/core';
import { brokerFeed } from '@brokerfeed/trpc';
import type { TrackedEnvelope } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { counter, flood } from './support/flood.ts';
import { observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

type Frames = AsyncIterable<TrackedEnvelope<unknown>, void, unknown>;

/** These move much data: on a busy machine they take their time. */
const LONG_MS = 60_000;

const PUSHED = 'brokerfeed.feed.pushed';
const MIB = 1024 * 1024;

async function until(condition: () => boolean): Promise<void> {
  await expect.poll(condition, { interval: 5, timeout: LONG_MS }).toBe(true);
}

describe('the event loop', () => {
  const ENTRIES = 100_000;

  /** Counts calls of `note` between turns of the event loop, until stopped. */
  function watchTurns() {
    const seen = { turns: 0, longest: 0, total: 0, inTurn: 0, running: true };
    const turn = (): void => {
      seen.longest = Math.max(seen.longest, seen.inTurn);
      seen.inTurn = 0;
      seen.turns += 1;
      if (seen.running) setImmediate(turn);
    };
    setImmediate(turn);
    return {
      seen,
      note(): void {
        seen.total += 1;
        seen.inTurn += 1;
      },
    };
  }

  test(
    'turns many times while a log of 100,000 entries is pushed that is all there',
    async () => {
      await using broker = observedBroker({ retention: { maxEntries: ENTRIES } });
      const { seen, note } = watchTurns();
      const router = t.router({
        feed: t.procedure.subscription(
          brokerFeed(broker, 'orders', {
            ...SIGNED,
            from: 'earliest',
            filter: () => {
              note();
              return true;
            },
          }),
        ),
      });
      await flood(broker, 'orders', 0, ENTRIES);
      await using server = await startWsServer(router, { attach: { maxBufferedBytes: 100 * MIB } });
      await using client = await RawClient.open(server.url);
      const came = counter(client);
      client.subscribe(1, 'feed');
      await until(() => came.next === ENTRIES);
      seen.running = false;
      expect(seen.total).toBe(ENTRIES);
      // A slice is bounded by time: what fits into one depends on the machine.
      expect(seen.longest).toBeLessThan(ENTRIES / 8);
      expect(seen.turns).toBeGreaterThan(8);
      expect(broker.meter.of(PUSHED)).toBe(1);
    },
    LONG_MS,
  );

  test('turns at least once in 64 values that go through tRPC, of however many subscribers', async () => {
    await using broker = observedBroker();
    const { seen, note } = watchTurns();
    const router = t.router({
      feed: t.procedure.subscription(async function* (opts) {
        const feed = await brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })(opts);
        for await (const frame of feed) {
          note();
          yield frame;
        }
      }),
    });
    await flood(broker, 'orders', 0, 300);
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    for (let id = 0; id < 20; id += 1) client.subscribe(id, 'feed');
    await client.count(20 + 20 * 300);
    seen.running = false;
    expect(seen.total).toBe(20 * 300);
    expect(seen.longest).toBeLessThanOrEqual(2 * 64);
  });

  test(
    'serves a quiet topic while others are flooded, pushed or not',
    async () => {
      const subscribers = 25;
      for (const [wrap, entries] of [
        [false, 4_000],
        [true, 600],
      ] as const) {
        await using broker = observedBroker({ retention: { maxEntries: entries } });
        let flooded = 0;
        const flooding = brokerFeed(broker, 'flood', {
          ...SIGNED,
          from: 'earliest',
          map: (value) => {
            flooded += 1;
            return value;
          },
        });
        const router = t.router({
          flood: t.procedure.subscription(async (opts): Promise<Frames> => {
            const feed = await flooding(opts);
            if (!wrap) return feed;
            return (async function* () {
              yield* feed;
            })();
          }),
          quiet: t.procedure.subscription(brokerFeed(broker, 'quiet', SIGNED)),
        });
        await flood(broker, 'flood', 0, entries);
        await using server = await startWsServer(router);
        await using quiet = await RawClient.open(server.url);
        await using busy = await RawClient.open(server.url);
        let came = 0;
        busy.ws.removeAllListeners('message');
        busy.ws.on('message', () => {
          came += 1;
        });
        quiet.subscribe(1, 'quiet');
        await quiet.started(1);
        for (let id = 0; id < subscribers; id += 1) busy.subscribe(id, 'flood');
        await broker.meter.attached(1 + subscribers);
        for (let n = 1; n <= 3; n += 1) {
          await broker.log.append('quiet', String(n));
          await quiet.take(1, n);
        }
        expect(flooded).toBeGreaterThan(0);
        expect(flooded).toBeLessThan((entries * subscribers) / 2);
        await until(() => came === subscribers * (1 + entries));
      }
    },
    LONG_MS,
  );
});

test('a herd that resumes over the same missed entries reads each page once and signs each entry once', async () => {
  const clients = 200;
  const missed = 600;
  await using broker = observedBroker();
  // How long pages are kept for a herd is a matter of time: here it stands still.
  const clock: Clock = { now: () => 0, after: () => () => {} };
  let encoded = 0;
  const router = t.router({
    feed: t.procedure.subscription(
      brokerFeed(broker, 'orders', {
        ...SIGNED,
        clock,
        prepare: (value) => ({
          value,
          toJSON() {
            encoded += 1;
            return { value };
          },
        }),
      }),
    ),
  });
  await using server = await startWsServer(router);
  await using first = await RawClient.open(server.url);
  first.subscribe(1, 'feed');
  await first.started(1);
  await broker.log.append('orders', '"first"');
  await first.take(1, 1);
  const lastEventId = first.token(1) as string;
  first.stop(1);
  await first.stopped(1);
  await broker.untilReads(0);
  for (let n = 0; n < missed; n += 1) await broker.log.append('orders', String(n));
  const before = {
    pages: broker.meter.of('brokerfeed.pages.read'),
    signatures: broker.meter.of('brokerfeed.feed.signatures'),
  };
  encoded = 0;
  const herd = await Promise.all(
    Array.from({ length: clients }, async () => {
      const client = await RawClient.open(server.url);
      client.subscribe(1, 'feed', { lastEventId });
      return client;
    }),
  );
  await Promise.all(herd.map((client) => client.count(1 + missed)));
  const texts = herd.map((client) => client.texts.join('\n'));
  expect(new Set(texts).size).toBe(1);
  expect(herd[0]?.values(1)).toEqual(Array.from({ length: missed }, (_, value) => ({ value })));
  expect(broker.meter.of('brokerfeed.feed.signatures') - before.signatures).toBe(missed);
  // Pages have 1,024 commits.
  expect(broker.meter.of('brokerfeed.pages.read') - before.pages).toBeLessThanOrEqual(
    Math.ceil(missed / 1024) + 1,
  );
  expect(broker.meter.of(PUSHED)).toBe(1 + clients);
  // Each entry once, and the first of each subscription twice more: by tRPC, and to compare.
  expect(encoded).toBeLessThanOrEqual(missed + 2 * clients);
  await Promise.all(herd.map((client) => client[Symbol.asyncDispose]()));
});
