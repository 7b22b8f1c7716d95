import { defineTopic } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';
import { brokerFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { BROKERS, openBroker } from './support/brokers.ts';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';
import { startInstance } from './support/instance.ts';
import { TestMeter } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';

const ACME = { tenant: 'acme' };
const TRACE = {
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
  tracestate: 'vendor=1',
};

const orders = defineTopic({
  name: ({ tenant }: { tenant: string }) => `orders.${tenant}`,
  schema: z.object({ id: z.string().min(1), price: z.number() }),
  idempotencyKey: ({ id }) => id,
  headers: () => TRACE,
});

describe.each(BROKERS)('on %s', (name) => {
  test('a mutation answers where its value is in the log, and subscribers get it with its trace', async () => {
    const meter = new TestMeter();
    await using broker = await openBroker(name, meter);
    const router = t.router({
      place: t.procedure
        .input(orders.schema)
        .mutation(({ input }) => orders.append(broker, ACME, input)),
      feed: t.procedure.subscription(
        brokerFeed(broker, orders, {
          ...SIGNED,
          params: () => ACME,
          map: (order, { headers, generation }) => ({ ...order, headers, generation }),
        }),
      ),
    });
    await using server = await startInstance(router);
    await using client = connect<typeof router>(server, 'ws');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await meter.attached(1);
    const order = { id: 'a', price: 1 };
    const placed = await client.trpc.place.mutate(order);
    expect(placed).toEqual((await broker.log.bounds('orders.acme')).last);
    // Sent again by a client that did not hear the answer.
    expect(await client.trpc.place.mutate(order)).toEqual(placed);
    await client.trpc.place.mutate({ id: 'b', price: 2 });
    expect(await feed.take(2)).toEqual([
      { ...order, headers: TRACE, generation: 1 },
      { id: 'b', price: 2, headers: TRACE, generation: 2 },
    ]);
    expect(meter.of('brokerfeed.topic.appends appended')).toBe(3);
  });
});

test('a payload that is not as the topic wants it is a 400 to its sender, and nothing is written', async () => {
  const meter = new TestMeter();
  await using broker = memoryBroker({ meter });
  const router = t.router({
    place: t.procedure
      .input(orders.schema)
      .mutation(({ input }) => orders.append(broker, ACME, input)),
    // One that looks at nothing: what is refused then is the server's own mistake.
    placeUnseen: t.procedure
      .input(z.any())
      .mutation(({ input }) => orders.append(broker, ACME, input)),
  });
  await using server = await startInstance(router);
  await using client = connect<typeof router>(server, 'ws');
  const bad = { id: 'a', price: 'much' };
  // @ts-expect-error - the price is a number
  await expect(client.trpc.place.mutate(bad)).rejects.toMatchObject({
    data: { code: 'BAD_REQUEST', httpStatus: 400 },
  });
  await expect(client.trpc.placeUnseen.mutate(bad)).rejects.toMatchObject({
    data: { code: 'INTERNAL_SERVER_ERROR', httpStatus: 500 },
    message: expect.stringContaining('is refused at price: '),
  });
  expect((await broker.log.bounds('orders.acme')).last.ordinal).toBe(0);
  expect(meter.of('brokerfeed.topic.appends VALUE_INVALID')).toBe(1);
});
