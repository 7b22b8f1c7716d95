import { brokerFeed } from '@brokerfeed/trpc';
import { initTRPC, type TrackedEnvelope, tracked } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { EventReader, startStreamServer } from './support/event-streams.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';

const PUSHED = 'brokerfeed.feed.pushed';

type Frames = AsyncIterable<TrackedEnvelope<unknown>, void, unknown>;

function feedOf(broker: ObservedBroker) {
  return brokerFeed(broker, 'orders', SIGNED);
}

/** A value that only the wrapper under test makes. */
function wrapped(frame: TrackedEnvelope<unknown>): TrackedEnvelope<unknown> {
  return tracked(frame[0], { wrapped: frame[1] });
}

/** Changes what an iterator answers with. */
function changing(next: () => Promise<IteratorResult<TrackedEnvelope<unknown>, void>>) {
  return async () => {
    const result = await next();
    return result.done ? result : { done: false as const, value: wrapped(result.value) };
  };
}

/** What may stand between a feed and the client, each changing every value. */
const WRAPPERS = {
  'a generator with for await': async function* (feed: Frames) {
    for await (const frame of feed) yield wrapped(frame);
  },
  'an iterator of its own': (feed: Frames) => ({
    [Symbol.asyncIterator]() {
      const inner = feed[Symbol.asyncIterator]();
      return { next: changing(() => inner.next()) };
    },
  }),
  'a proxy of the feed': (feed: Frames) =>
    new Proxy(feed, {
      get(target, key) {
        const member: unknown = Reflect.get(target, key, target);
        if (key === Symbol.asyncIterator) return () => new Proxy(target, this);
        if (typeof member !== 'function') return member;
        return key === 'next' ? changing(member.bind(target)) : member.bind(target);
      },
    }),
  'another method on the feed itself': (feed: Frames) => {
    const iterator = feed as Frames & AsyncIterator<TrackedEnvelope<unknown>, void, unknown>;
    iterator.next = changing(iterator.next.bind(feed));
    return feed;
  },
  'an object that inherits from the feed': (feed: Frames) =>
    Object.create(feed, {
      [Symbol.asyncIterator]: {
        value: () => {
          const inner = feed[Symbol.asyncIterator]();
          return { next: changing(() => inner.next()), return: () => inner.return?.() };
        },
      },
    }) as Frames,
} satisfies Record<string, (feed: Frames) => AsyncIterable<TrackedEnvelope<unknown>>>;

async function appendFive(broker: ObservedBroker): Promise<void> {
  for (let n = 0; n < 5; n += 1) await broker.log.append('orders', String(n));
}

describe.each([false, true])(
  'what changes a value before the client is never bypassed, with pings: %s',
  (enabled) => {
    const root = initTRPC.create({ sse: { ping: { enabled, intervalMs: 10_000 } } });

    test.each(Object.entries(WRAPPERS))('%s', async (_name, wrap) => {
      await using broker = observedBroker();
      const router = root.router({
        feed: root.procedure.subscription(async (opts) => wrap(await feedOf(broker)(opts))),
      });
      await using server = await startStreamServer(router);
      await using reader = await EventReader.open(`${server.httpUrl}/feed`);
      await broker.meter.attached(1);
      await appendFive(broker);
      expect(await reader.take(5)).toEqual([0, 1, 2, 3, 4].map((n) => ({ wrapped: n })));
      expect(broker.meter.of(PUSHED)).toBe(0);
    });

    test('a validator of each value', async () => {
      await using broker = observedBroker();
      const output = z
        .custom<Frames>((value) => typeof value === 'object')
        .transform(async function* (frames) {
          for await (const [id, data] of frames) yield tracked(id, z.number().max(3).parse(data));
        });
      const router = root.router({
        feed: root.procedure.output(output).subscription((opts) => feedOf(broker)(opts)),
      });
      await using server = await startStreamServer(router);
      await using reader = await EventReader.open(`${server.httpUrl}/feed`);
      await broker.meter.attached(1);
      await appendFive(broker);
      await reader.over();
      expect(reader.values).toEqual([0, 1, 2, 3]);
      expect(reader.text).toContain('<=3');
      expect(broker.meter.of(PUSHED)).toBe(0);
    });

    test('.errors(), which formats what the feed throws', async () => {
      await using broker = observedBroker();
      const router = root.router({
        feed: root.procedure
          .errors(({ shape }) => ({ ...shape, message: 'formatted' }))
          .subscription(feedOf(broker)),
      });
      await using server = await startStreamServer(router);
      await using reader = await EventReader.open(`${server.httpUrl}/feed`);
      await broker.meter.attached(1);
      await broker.log.append('orders', '1');
      await reader.take(1);
      await broker.close();
      await reader.over();
      expect(reader.text).toContain('"message":"formatted"');
      expect(broker.meter.of(PUSHED)).toBe(0);
    });

    test('a middleware that puts another iterable in the place of the feed', async () => {
      await using broker = observedBroker();
      const procedure = root.procedure.use(async (opts) => {
        const result = await opts.next();
        if (!result.ok) return result;
        const data = WRAPPERS['a generator with for await'](result.data as Frames);
        return { ...result, data };
      });
      const router = root.router({ feed: procedure.subscription(feedOf(broker)) });
      await using server = await startStreamServer(router);
      await using reader = await EventReader.open(`${server.httpUrl}/feed`);
      await broker.meter.attached(1);
      await appendFive(broker);
      expect(await reader.take(5)).toEqual([0, 1, 2, 3, 4].map((n) => ({ wrapped: n })));
      expect(broker.meter.of(PUSHED)).toBe(0);
    });
  },
);

test('middlewares that look on, and pass the feed as it is, do not keep it from being pushed', async () => {
  await using broker = observedBroker();
  const procedure = t.procedure
    .use(async ({ next }) => {
      const result = await next();
      return { ...result };
    })
    .use(({ next }) => next({ ctx: { more: 1 } }));
  const router = t.router({
    feed: procedure.subscription(async (opts) => await feedOf(broker)(opts)),
  });
  await using server = await startStreamServer(router);
  await using reader = await EventReader.open(`${server.httpUrl}/feed`);
  await broker.meter.until(PUSHED, 1);
  await appendFive(broker);
  expect(await reader.take(5)).toEqual([0, 1, 2, 3, 4]);
});

test('a response that is to end after its first value ends after it', async () => {
  await using broker = observedBroker();
  const root = initTRPC.create({ sse: { emitAndEndImmediately: true } });
  const router = root.router({ feed: root.procedure.subscription(feedOf(broker)) });
  await using server = await startStreamServer(router);
  await using reader = await EventReader.open(`${server.httpUrl}/feed`);
  await broker.meter.attached(1);
  await broker.log.append('orders', '1');
  await reader.over();
  expect([reader.values, reader.state]).toEqual([[1], 'ended']);
  expect(broker.meter.of(PUSHED)).toBe(0);
});

test('a response whose bytes somebody else changes on their way is written by tRPC alone', async () => {
  await using broker = observedBroker();
  const router = t.router({ feed: t.procedure.subscription(feedOf(broker)) });
  const responses: import('node:http').ServerResponse[] = [];
  await using server = await startStreamServer(router, {
    handler: {
      createContext: ({ res }) => {
        responses.push(res);
        return {};
      },
      // After the procedure: in front of whatever took the place of `write` before.
      responseMeta: () => {
        const [response] = responses;
        const write = response?.write.bind(response);
        const masked = (chunk: Uint8Array): boolean =>
          write?.(chunk.map((byte) => byte ^ 0x55)) ?? true;
        if (response !== undefined) response.write = masked as typeof response.write;
        return {};
      },
    },
  });
  await using reader = await EventReader.open(`${server.httpUrl}/feed`);
  await broker.meter.attached(1);
  await broker.log.append('orders', '"masked"');
  const masked = Buffer.from('"masked"').map((byte) => byte ^ 0x55);
  await reader.includes(masked.toString());
  expect(broker.meter.of(PUSHED)).toBe(0);
});
