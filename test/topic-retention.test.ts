import { defineTopic, type Position } from '@brokerfeed/core';
import { brokerFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

const cursors = defineTopic({
  name: ({ room }: { room: string }) => `cursors.${room}`,
  schema: z.number(),
  retention: { maxEntries: 2 },
});
const ROOM = { room: 'a' };

const router = (broker: ReturnType<typeof observedBroker>) =>
  t.router({
    feed: t.procedure
      .input(z.object({ room: z.string(), lastEventId: z.string().optional() }))
      .subscription(brokerFeed(broker, cursors, { ...SIGNED, params: ({ input }) => input })),
  });

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a client that was away for longer than its topic is retained gets 410, and one that was just not goes on', async () => {
    await using broker = observedBroker();
    await using server = await startServer(router(broker));
    await using client = connect<ReturnType<typeof router>>(server, transport);
    const append = (value: number): Promise<Position> => cursors.append(broker, ROOM, value);
    using feed = collect((on) => client.trpc.feed.subscribe(ROOM, on));
    await broker.meter.attached(1);
    for (const value of [1, 2]) await append(value);
    await feed.take(2);
    const [first, second] = feed.frames.map(({ id }) => id);
    feed.unsubscribe();
    await broker.untilReads(0);
    for (const value of [3, 4]) await append(value);
    using late = collect((on) =>
      client.trpc.feed.subscribe({ ...ROOM, lastEventId: first as string }, on),
    );
    expect(await late.refusal()).toMatchObject({
      httpStatus: 410,
      feed: { status: 410, reason: 'trimmed' },
    });
    using just = collect((on) =>
      client.trpc.feed.subscribe({ ...ROOM, lastEventId: second as string }, on),
    );
    expect(await just.take(2)).toEqual([3, 4]);
  });
});
