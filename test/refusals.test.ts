import { BrokerError } from '@brokerfeed/core';
import { memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed } from '@brokerfeed/trpc';
import { initTRPC, TRPCError } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { observedBroker } from './support/observed.ts';
import { OTHER_SECRET, SECRET, SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';
import { mintToken } from './support/tokens.ts';

const resumable = z.object({ lastEventId: z.string().optional() });

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a 410 says so, ends the subscription, and leaves the connection to others', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    const router = t.router({
      feed: t.procedure.input(resumable).subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const lastEventId = await mintToken(broker, 'orders');
    await broker.log.append('orders', ['1', '2']);
    await broker.log.append('orders', '3');
    store.trim('orders', 1);
    using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
    expect(await feed.refusal()).toEqual(
      expect.objectContaining({
        code: 'PRECONDITION_FAILED',
        httpStatus: 410,
        feed: { status: 410, reason: 'trimmed' },
      }),
    );
    // `started` would be a lie. (Over SSE it is said of the stream, before the feed is asked.)
    if (transport === 'ws') expect(feed.started).toBe(0);
    using fresh = collect((on) => client.trpc.feed.subscribe({}, on));
    await broker.meter.until('brokerfeed.feed.resumes fresh', 2);
    await broker.log.append('orders', '4');
    expect(await fresh.take(1)).toEqual([4]);
  });

  test('a 410 in a router without the error formatter is a 412, and clients live on', async () => {
    await using broker = observedBroker();
    const plain = initTRPC.create();
    const router = plain.router({
      feed: plain.procedure.input(resumable).subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    await using elsewhere = observedBroker();
    const lastEventId = await mintToken(elsewhere, 'orders');
    using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
    expect(await feed.refusal()).toMatchObject({ code: 'PRECONDITION_FAILED', httpStatus: 412 });
    using fresh = collect((on) => client.trpc.feed.subscribe({}, on));
    await broker.meter.until('brokerfeed.feed.resumes fresh', 1);
    await broker.log.append('orders', '1');
    expect(await fresh.take(1)).toEqual([1]);
  });

  test('a dead id is sent once: no refusal is one that a client retries by itself', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.input(resumable).subscription(brokerFeed(broker, 'orders', SIGNED)),
      other: t.procedure.subscription(brokerFeed(broker, 'other', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId: 'garbage' }, on));
    expect(await feed.refusal()).toMatchObject({ httpStatus: 400, feed: { reason: 'malformed' } });
    expect(feed.stateErrors).toEqual([]);
    // Several reconnection times later, as another feed shows that has come back three times:
    using other = collect((on) => client.trpc.other.subscribe(undefined, on));
    await broker.meter.until('brokerfeed.feed.resumes fresh', 1);
    for (let returns = 1; returns <= 3; returns += 1) {
      await broker.log.append('other', String(returns));
      await other.take(returns);
      server.dropSockets();
    }
    await broker.meter.until('brokerfeed.feed.resumes resumed', 3);
    expect(broker.meter.of('brokerfeed.feed.resumes malformed')).toBe(1);
    expect(other.errors).toEqual([]);
  });

  test('what is wrong decides the code: another secret 400, trimmed 410, another log 410', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    const router = t.router({
      feed: t.procedure.input(resumable).subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const refusalOf = async (lastEventId: string) => {
      using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
      return (await feed.refusal())?.feed;
    };
    const early = await mintToken(broker, 'orders');
    const forged = await mintToken(broker, 'orders', { ...SIGNED, secret: OTHER_SECRET });
    expect(await refusalOf(forged)).toEqual({ status: 400, reason: 'signature' });
    await mintToken(broker, 'orders');
    store.trim('orders', 1);
    expect(await refusalOf(early)).toEqual({ status: 410, reason: 'trimmed' });
    store.drop('orders');
    await broker.log.append('orders', '1');
    expect(await refusalOf(early)).toEqual({ status: 410, reason: 'epoch' });
    // The mac is looked at first: a forged id learns nothing about the log.
    expect(await refusalOf(forged)).toEqual({ status: 400, reason: 'signature' });
  });

  test('the last trimmed entry, and the tip of a topic trimmed to empty, resume', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    const router = t.router({
      feed: t.procedure.input(resumable).subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const lastEventId = await mintToken(broker, 'orders');
    await broker.log.append('orders', '1');
    store.trim('orders', 1);
    using boundary = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
    expect(await boundary.take(1)).toEqual([1]);
    store.trim('orders', 0);
    using tip = collect((on) =>
      client.trpc.feed.subscribe({ lastEventId: boundary.frames[0]?.id }, on),
    );
    await broker.meter.until('brokerfeed.feed.resumes resumed', 2);
    await broker.log.append('orders', '2');
    expect(await tip.take(1)).toEqual([2]);
  });

  test('a token is good for its topic and its audience alone', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .input(
          z.object({ topic: z.string(), user: z.string(), lastEventId: z.string().optional() }),
        )
        .subscription(
          brokerFeed(broker, ({ input }) => input.topic, {
            ...SIGNED,
            bind: ({ input }) => input.user,
          }),
        ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const bound = { ...SIGNED, bind: ({ ctx }: { ctx: { user?: string } }) => ctx.user ?? '' };
    const lastEventId = await mintToken(broker, 'a', bound, { user: 'bc' });
    for (const [topic, user] of [
      ['b', 'bc'],
      ['a', 'bd'],
      // The parts of the mac are framed: no other split of the same letters spells it.
      ['ab', 'c'],
      ['abc', ''],
      ['', 'abc'],
    ] as const) {
      using feed = collect((on) => client.trpc.feed.subscribe({ topic, user, lastEventId }, on));
      const reason = topic === '' ? 'topic' : 'signature';
      expect((await feed.refusal())?.feed).toEqual({ status: 400, reason });
    }
    using feed = collect((on) =>
      client.trpc.feed.subscribe({ topic: 'a', user: 'bc', lastEventId }, on),
    );
    await broker.meter.until('brokerfeed.feed.resumes resumed', 1);
    await broker.log.append('a', '1');
    expect(await feed.take(1)).toEqual([1]);
  });

  test('a rotated secret loses nobody: the old one still verifies, the new one signs', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .input(resumable)
        .subscription(brokerFeed(broker, 'orders', { ...SIGNED, secret: [OTHER_SECRET, SECRET] })),
      next: t.procedure
        .input(resumable)
        .subscription(brokerFeed(broker, 'orders', { ...SIGNED, secret: OTHER_SECRET })),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const lastEventId = await mintToken(broker, 'orders');
    await broker.log.append('orders', '1');
    using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
    expect(await feed.take(1)).toEqual([1]);
    await broker.log.append('orders', '2');
    using next = collect((on) =>
      client.trpc.next.subscribe({ lastEventId: feed.frames[0]?.id }, on),
    );
    expect(await next.take(1)).toEqual([2]);
  });

  test('a topic resolver refuses as it likes, and one that answers no topic refuses with a 400', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.input(z.object({ topic: z.unknown() })).subscription(
        brokerFeed(broker, ({ input }) => {
          if (input.topic === 'secret')
            throw new TRPCError({ code: 'FORBIDDEN', message: 'not yours' });
          return input.topic as string;
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using forbidden = collect((on) => client.trpc.feed.subscribe({ topic: 'secret' }, on));
    expect(await forbidden.refusal()).toMatchObject({ code: 'FORBIDDEN', httpStatus: 403 });
    expect(forbidden.errors[0]?.message).toBe('not yours');
    for (const topic of ['', null, 5, ['a'], 'x'.repeat(513)]) {
      using feed = collect((on) => client.trpc.feed.subscribe({ topic }, on));
      expect((await feed.refusal())?.feed).toEqual({ status: 400, reason: 'topic' });
    }
  });

  test('a map that throws on one entry skips it, and does not loop', async () => {
    await using broker = observedBroker();
    let calls = 0;
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          map: (value) => {
            calls += 1;
            if (value === 2) throw new Error('poison');
            return value;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    for (const value of ['1', '2', 'no json', '3']) await broker.log.append('orders', value);
    expect(await feed.take(2)).toEqual([1, 3]);
    expect(calls).toBe(3);
    expect(broker.meter.of('brokerfeed.feed.refused')).toBe(2);
    expect(broker.meter.of('brokerfeed.feed.resumes')).toBe(1);
  });

  test("onEntryError: 'end' ends the feed for good, with a 422 that no client retries", async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          onEntryError: 'end',
          map: () => {
            throw new Error('poison');
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await broker.log.append('orders', '1');
    expect(await feed.refusal()).toMatchObject({
      httpStatus: 422,
      feed: { status: 422, reason: 'entry' },
    });
    await broker.untilReads(0);
    expect(broker.meter.of('brokerfeed.feed.resumes')).toBe(1);
  });

  test('a broker that is closed ends its feeds with a 503, never as completed', async () => {
    const store = memoryStore();
    await using broker = observedBroker({ store });
    await using next = observedBroker({ store });
    const routerOf = (of: typeof broker) =>
      t.router({ feed: t.procedure.subscription(brokerFeed(of, 'orders', SIGNED)) });
    const router = routerOf(broker);
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await broker.log.append('orders', '1');
    await feed.take(1);
    await broker.close();
    const error = async () => {
      // wsLink ends on every error; the SSE link shows a 5xx as a state, and comes back by itself.
      await feed.until(({ errors, stateErrors }) =>
        [...errors, ...stateErrors].some((e) => e.data?.feed),
      );
      return [...feed.errors, ...feed.stateErrors].find((e) => e.data?.feed);
    };
    expect((await error())?.data).toMatchObject({
      httpStatus: 503,
      feed: { status: 503, reason: 'closing' },
    });
    if (transport === 'ws') return;
    await server.restart(routerOf(next));
    await next.log.append('orders', '2');
    expect(await feed.take(2)).toEqual([1, 2]);
    expect(feed.errors).toEqual([]);
    expect(feed.completed).toBe(false);
  });

  test('an outage that ends within the tries is not seen, and loses nothing', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, retryDelaysMs: [1, 1, 1, 1, 1, 1_000] }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    await broker.log.append('orders', '1');
    await feed.take(1);
    broker.breakReads(new BrokerError('UNAVAILABLE', 'connection lost'));
    await broker.log.append('orders', '2');
    await broker.meter.until('brokerfeed.tail.restarts', 3);
    broker.breakReads(undefined);
    await broker.log.append('orders', '3');
    expect(await feed.take(3)).toEqual([1, 2, 3]);
    expect(feed.errors).toEqual([]);
    expect(feed.stateErrors).toEqual([]);
    expect(broker.meter.of('brokerfeed.feed.resumes')).toBe(1);
  });

  test('an outage that outlasts the tries ends every feed with a 503', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, retryDelaysMs: [1, 1] }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using one = collect((on) => client.trpc.feed.subscribe(undefined, on));
    using two = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(2);
    await broker.log.append('orders', '1');
    await Promise.all([one.take(1), two.take(1)]);
    broker.breakReads(new BrokerError('UNAVAILABLE', 'connection lost'));
    for (const feed of [one, two]) {
      await feed.until(({ errors, stateErrors }) =>
        [...errors, ...stateErrors].some((e) => e.data?.feed),
      );
      const error = [...feed.errors, ...feed.stateErrors].find((e) => e.data?.feed);
      expect(error?.data).toMatchObject({
        httpStatus: 503,
        feed: { status: 503, reason: 'unavailable' },
      });
    }
    broker.breakReads(undefined);
    await broker.log.append('orders', '2');
    // SSE comes back by itself with its id; a WebSocket client subscribes again.
    if (transport === 'sse') {
      expect(await one.take(2)).toEqual([1, 2]);
      expect(await two.take(2)).toEqual([1, 2]);
    }
    using fresh = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.until('brokerfeed.feed.resumes fresh', 3);
    await broker.log.append('orders', '3');
    expect(await fresh.take(1)).toEqual([3]);
  });
});

test('over sse a refusal is an event of a 200 response, whatever its status', async () => {
  await using broker = observedBroker();
  const router = t.router({ feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)) });
  await using server = await startServer(router);
  const response = await fetch(`${server.httpUrl}/feed`, {
    headers: { 'last-event-id': 'garbage' },
  });
  expect(response.status).toBe(200);
  const text = await response.text();
  expect(text).toContain('event: serialized-error');
  expect(text).toContain('"httpStatus":400');
});
