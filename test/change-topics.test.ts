import { type Change, changes, type Mutation } from '@brokerfeed/core';
import { brokerFeed } from '@brokerfeed/trpc';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { openBroker } from './support/brokers.ts';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { startInstance } from './support/instance.ts';
import { TestMeter } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';

/** Who is to hear of a change: those who look at that type. */
function topicFor(change: Change): string {
  return `graph.${change.kind === 'entity' ? change.entity.type : change.relation.type}`;
}

test.each(TRANSPORTS)(
  "a store's listener puts each change on a topic of its own choice, and clients get theirs in order over %s, after a cut too",
  async (transport) => {
    const meter = new TestMeter();
    await using broker = await openBroker('redis', meter);
    const store = changes(broker, 'graph');
    const passedOn: Promise<unknown>[] = [];
    store.onChange((change) => {
      const { generation, index } = change;
      const idempotencyKey = `${generation}.${index}`;
      passedOn.push(
        broker.log.append(topicFor(change), JSON.stringify(change), { idempotencyKey }),
      );
    });
    const router = t.router({
      feed: t.procedure
        .input(z.object({ type: z.string() }))
        .subscription(brokerFeed(broker, ({ input }) => `graph.${input.type}`, SIGNED)),
    });
    await using server = await startInstance(router);
    await using client = connect<typeof router>(server, transport);
    using people = collect((on) => client.trpc.feed.subscribe({ type: 'person' }, on));
    using places = collect((on) => client.trpc.feed.subscribe({ type: 'place' }, on));
    await meter.attached(2);
    const write = async (...ids: string[]): Promise<void> => {
      await store.append(ids.map((id) => entity(id)));
    };
    await write('person 1', 'place 1', 'person 2');
    await Promise.all([write('person 3'), write('place 2', 'person 4'), write('place 3')]);
    await people.take(4);
    server.cut();
    await write('person 5', 'place 4');
    await Promise.all(passedOn);
    const seen = (values: readonly unknown[]): string[] =>
      (values as Change[]).map(({ generation, index, ...change }) =>
        change.kind === 'entity' ? `${generation}.${index} ${change.entity.id}` : 'another',
      );
    expect(seen(await people.take(5))).toEqual([
      ...['1.0 person 1', '1.2 person 2', '2.0 person 3', '3.1 person 4', '5.0 person 5'],
    ]);
    expect(seen(await places.take(4))).toEqual([
      ...['1.1 place 1', '3.0 place 2', '4.0 place 3', '5.1 place 4'],
    ]);
  },
);

function entity(id: string): Mutation {
  const [type] = id.split(' ') as [string];
  return { kind: 'entity', op: 'add', entity: { id, type, metadata: {} } };
}
