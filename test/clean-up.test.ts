import { brokerFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { gate } from './support/gate.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a client that unsubscribes from a quiet feed, or is cut off from it, leaves no read behind', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    const client = connect<typeof router>(server, transport);
    const left = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(1);
    expect(broker.reads).toBe(1);
    left.unsubscribe();
    await broker.untilReads(0);
    using cut = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await broker.meter.attached(2);
    await broker.untilReads(1);
    await client[Symbol.asyncDispose]();
    server.dropSockets();
    await broker.untilReads(0);
    expect(cut.values).toEqual([]);
  });

  test('a client that leaves while its topic is found, or its entry is mapped, leaves no read behind', async () => {
    await using broker = observedBroker();
    const finding = gate();
    const mapping = gate();
    const ended: string[] = [];
    const router = t.router({
      found: t.procedure.subscription(
        brokerFeed(
          broker,
          async ({ signal }) => {
            signal?.addEventListener('abort', () => ended.push('found'));
            await finding.pass();
            return 'orders';
          },
          SIGNED,
        ),
      ),
      mapped: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          map: async (value) => {
            await mapping.pass();
            return value;
          },
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    finding.close();
    using found = collect((on) => client.trpc.found.subscribe(undefined, on));
    await finding.reached;
    found.unsubscribe();
    using mapped = collect((on) => client.trpc.mapped.subscribe(undefined, on));
    await broker.meter.attached(1);
    mapping.close();
    await broker.log.append('orders', '1');
    await mapping.reached;
    // The abort of the first has come by now: the second was asked for after it, and stands.
    await expect.poll(() => ended).toEqual(['found']);
    finding.open();
    mapped.unsubscribe();
    await broker.untilReads(0);
    mapping.open();
    expect(mapped.values).toEqual([]);
  });

  test('a refused client leaves no read behind', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    // JavaScript callers may bring an input that the procedure's type does not name.
    const input = { lastEventId: 'garbage' } as unknown as undefined;
    using feed = collect((on) => client.trpc.feed.subscribe(input, on));
    expect((await feed.refusal())?.feed?.reason).toBe('malformed');
    expect(broker.reads).toBe(0);
  });

  test('twenty clients that come and go share one read at a time, and the last one ends it', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const feeds = Array.from({ length: 20 }, () =>
      collect((on) => client.trpc.feed.subscribe(undefined, on)),
    );
    await broker.meter.attached(20);
    expect(broker.reads).toBe(1);
    expect(broker.started).toBe(1);
    for (const feed of feeds) feed.unsubscribe();
    await broker.untilReads(0);
    expect(broker.started).toBe(1);
  });
});

describe('the iterable of a resolver', () => {
  const call = { ctx: {}, input: undefined, path: 'feed' } as const;

  test('is released by its signal where nobody iterates it', async () => {
    await using broker = observedBroker();
    const left = new AbortController();
    await brokerFeed(broker, 'orders', SIGNED)({ ...call, signal: left.signal });
    await broker.untilReads(1);
    left.abort();
    await broker.untilReads(0);
  });

  test('is released by return() and by throw() before its first next()', async () => {
    await using broker = observedBroker();
    const open = async () => {
      const feed = await brokerFeed(broker, 'orders', SIGNED)({ ...call, signal: undefined });
      await broker.untilReads(1);
      return feed[Symbol.asyncIterator]();
    };
    await (await open()).return?.();
    await broker.untilReads(0);
    await expect((await open()).throw?.(new Error('enough'))).rejects.toThrow('enough');
    await broker.untilReads(0);
  });

  test('is released by a break out of a loop, by an abort while it waits, and by its own failure', async () => {
    await using broker = observedBroker();
    const open = async (signal?: AbortSignal) => {
      const feed = await brokerFeed(broker, 'orders', SIGNED)({ ...call, signal });
      await broker.untilReads(1);
      return feed;
    };
    const broken = await open();
    await broker.log.append('orders', '1');
    for await (const _ of broken) break;
    await broker.untilReads(0);

    const left = new AbortController();
    const waiting = (await open(left.signal))[Symbol.asyncIterator]().next();
    left.abort();
    await expect(waiting).resolves.toEqual({ done: true, value: undefined });
    await broker.untilReads(0);

    const failing = (await open())[Symbol.asyncIterator]();
    const next = failing.next();
    await broker.close();
    await expect(next).rejects.toMatchObject({ reason: 'closing', httpStatus: 503 });
    await broker.untilReads(0);
  });

  test('ends an aborted subscription quietly, and a signal that was aborted before opens nothing', async () => {
    await using broker = observedBroker();
    const feed = await brokerFeed(
      broker,
      'orders',
      SIGNED,
    )({ ...call, signal: AbortSignal.abort() });
    const values: unknown[] = [];
    for await (const value of feed) values.push(value);
    expect(values).toEqual([]);
    await broker.untilReads(0);
  });
});
