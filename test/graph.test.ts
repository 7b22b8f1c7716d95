import { changes } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';
import { packToken, parseToken, printToken } from '@brokerfeed/core/wire';
import { brokerFeed } from '@brokerfeed/trpc';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import type { Entities, GraphChange, GraphSnapshot, Relations } from '../examples/graph/graph.ts';
import { GraphStore } from '../examples/graph/graph-store.ts';
import { type GraphFrame, Replica } from '../examples/graph/replica.ts';
import { graphRouter, TOPIC } from '../examples/graph/router.ts';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { EventReader, startStreamServer } from './support/event-streams.ts';
import {
  connectTo,
  edge,
  GraphWorld,
  never,
  node,
  STEP,
  sorted,
  WRITE,
} from './support/graph-world.ts';
import { TestMeter } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SECRET, SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';
import { SOAK, soaked } from './support/soak.ts';
import { startWsServer } from './support/ws-server.ts';

/** Many servers and reconnections, beside other tests. */
vi.setConfig({ testTimeout: 60_000 * SOAK });

test('over each transport, pulled and pushed, frames are what a listener in the process hears, field for field', async () => {
  const meter = new TestMeter();
  await using broker = memoryBroker({ meter });
  const store = await GraphStore.open(broker, TOPIC, never);
  const router = t.router({
    feed: t.procedure.subscription(
      brokerFeed(broker, TOPIC, { ...SIGNED, decode: store.changes.decode }),
    ),
  });
  await using server = await startServer(router);
  await using ws = connect<typeof router>(server, 'ws');
  await using sse = connect<typeof router>(server, 'sse');
  await using wsServer = await startWsServer(router);
  await using pushedWs = await RawClient.open(wsServer.url);
  await using sseServer = await startStreamServer(router);
  using overWs = collect((on) => ws.trpc.feed.subscribe(undefined, on));
  using overSse = collect((on) => sse.trpc.feed.subscribe(undefined, on));
  pushedWs.subscribe(1, 'feed');
  await using pushedSse = await EventReader.open(`${sseServer.httpUrl}/feed`);
  await meter.attached(4);

  const heard: GraphChange[] = [];
  store.changes.onChange((change) => heard.push(change));
  await store.transact((write) => {
    write.add(node('ann', ['team']));
    write.add(node('ben'));
    write.relate(edge('ann-ben', 'ann', 'ben'));
    write.update('ann', { note: 'näher 🐎 \u2028' });
  });
  await store.saveDraft('ann', 'a note that is typed');
  await store.transact((write) => write.weigh('ann-ben', 3));
  await store.transact((write) => write.remove('ben'));

  expect(heard.map(({ generation, index, op }) => `${generation}.${index} ${op}`)).toEqual([
    '1.0 add',
    '1.1 add',
    '1.2 relate',
    '1.3 update',
    '3.0 update',
    '4.0 unrelate',
    '4.1 remove',
  ]);
  expect(heard[5]).toEqual({
    kind: 'relation',
    op: 'unrelate',
    relation: edge('ann-ben', 'ann', 'ben', 3),
    fromTags: ['team'],
    generation: 4,
    index: 0,
  });
  const count = heard.length;
  expect(await overWs.take(count)).toEqual(heard);
  expect(await overSse.take(count)).toEqual(heard);
  expect(await pushedWs.take(1, count)).toEqual(heard);
  expect(await pushedSse.take(count)).toEqual(heard);
  expect(meter.of('brokerfeed.feed.pushed')).toBe(2);
});

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a client that begins at the head has a real position before the first change', async () => {
    await using broker = memoryBroker();
    const store = await GraphStore.open(broker, TOPIC, never);
    await store.transact((write) => write.add(node('before')));
    await using server = await startServer(graphRouter({ broker, store, secret: SECRET }));
    await using client = connectTo(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    expect(await feed.take(2)).toEqual([{ feed: 'attached' }, { feed: 'live' }]);
    const { kind, ordinal } = parseToken(feed.frames[0]?.id ?? '')?.fields ?? {};
    expect({ kind, ordinal }).toEqual({ kind: 'position', ordinal: 1 });
    server.dropSockets();
    await store.transact((write) => write.add(node('while it was away')));
    const idsOf = (values: readonly unknown[]) =>
      values.flatMap((frame) => idOf(frame as GraphFrame) ?? []);
    await feed.until(({ values }) => idsOf(values).length > 0);
    expect(idsOf(feed.values)).toEqual(['while it was away']);
  });

  test('a client that was cut off inside a commit gets the whole of it again, under the same addresses', async () => {
    const meter = new TestMeter();
    await using broker = memoryBroker({ meter });
    const store = changes<Entities, Relations>(broker, TOPIC);
    const router = feedOf(broker, SIGNED);
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using first = collect((on) => client.trpc.feed.subscribe({}, on));
    await meter.attached(1);
    await store.append(['a', 'b', 'c', 'd'].map((id) => added(id)));
    const whole = await first.take(4);
    const lastEventId = first.frames[1]?.id as string;
    using again = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
    expect(await again.take(4)).toEqual(whole);
    expect(whole.map((change) => (change as GraphChange).index)).toEqual([0, 1, 2, 3]);
  });

  test('a position past the head is refused by name', async () => {
    const meter = new TestMeter();
    await using broker = memoryBroker({ meter });
    const store = changes<Entities, Relations>(broker, TOPIC);
    const router = feedOf(broker, { lingerMs: 0 });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe({}, on));
    await meter.attached(1);
    await store.append([added('a')]);
    await feed.take(1);
    const fields = parseToken(feed.frames[0]?.id ?? '')?.fields;
    if (fields === undefined) expect.fail('the token cannot be parsed');
    const past = { ...fields, ordinal: 2, id: '2' };
    const lastEventId = printToken(packToken(past, undefined), undefined);
    using refused = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
    expect(await refused.refusal()).toMatchObject({
      httpStatus: 400,
      feed: { status: 400, reason: 'ahead' },
    });
  });

  test('a client that applies frames alone ends with the graph of the store', async () => {
    let snapshots = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(STEP, { minLength: 5, maxLength: 14 }), async (steps) => {
        await using world = await GraphWorld.make(transport);
        for (const step of steps) await world.take(step);
        await world.settle();
        expect(world.held()).toEqual(world.stored());
        // No fetch for any frame: the graph is loaded as a whole where a client begins.
        expect(world.loads).toBe(1);
        expect(world.snapshots).toBe(world.gaps);
        snapshots += world.snapshots;
      }),
      {
        numRuns: soaked(10),
        examples: [[[WRITE, { step: 'gap' }, WRITE, { step: 'cut' }, WRITE]]],
      },
    );
    expect(snapshots).toBeGreaterThan(0);
  });
});

test('what is impossible is refused, and nothing of its transaction is done or told', async () => {
  await using broker = memoryBroker();
  const store = await GraphStore.open(broker, TOPIC, never);
  await store.transact((write) => {
    write.add(node('a'));
    write.add(node('b'));
    write.relate(edge('ab', 'a', 'b'));
  });
  const before = store.snapshot();
  const heard: GraphChange[] = [];
  store.changes.onChange((change) => heard.push(change));
  const refused = store.transact((write) => {
    write.update('a', { note: 'changed' });
    write.remove('b');
    write.add(node('b', ['another']));
    write.relate(edge('ax', 'a', 'nobody'));
  });
  await expect(refused).rejects.toThrow('there is no nobody');
  expect(sorted(store.snapshot())).toEqual(sorted(before));
  expect(heard).toEqual([]);
});

describe('a page', () => {
  test('applies what comes while the graph is loaded after what was loaded', async () => {
    const { replica, loading, answer } = page();
    const begun = replica.receive({ feed: 'attached' });
    await replica.receive({ ...added('a'), op: 'remove', generation: 2, index: 0 });
    expect(loading()).toBe(1);
    answer({ generation: 1, entities: [node('a'), node('b')], relations: [] });
    await begun;
    expect([...replica.graph.entities.keys()]).toEqual(['b']);
    expect(replica.generation).toBe(2);
  });

  test('applies nothing that the loaded graph has already, and nothing twice', async () => {
    const { replica, answer } = page();
    const begun = replica.receive({ feed: 'attached' });
    await replica.receive({ ...added('removed since'), generation: 1, index: 0 });
    answer({ generation: 2, entities: [], relations: [] });
    await begun;
    expect([...replica.graph.entities.keys()]).toEqual([]);
    const [first, second] = ['a', 'b'].map((id, index) => ({ ...added(id), generation: 3, index }));
    for (const change of [first, second]) await replica.receive(change as GraphChange);
    const held = replica.graph.entities.get('a');
    for (const change of [first, second]) {
      await replica.receive(structuredClone(change) as GraphChange);
    }
    expect(replica.graph.entities.get('a')).toBe(held);
    expect([...replica.graph.entities.keys()]).toEqual(['a', 'b']);
  });

  test('keeps the graph that came after a gap, whenever the one it loads comes', async () => {
    const { replica, loading, answer } = page();
    const begun = replica.receive({ feed: 'attached' });
    await replica.receive({ snapshot: { generation: 5, entities: [node('new')], relations: [] } });
    await replica.receive({ feed: 'attached' });
    answer({ generation: 1, entities: [node('old')], relations: [] });
    await begun;
    expect([...replica.graph.entities.keys()]).toEqual(['new']);
    expect(replica.generation).toBe(5);
    expect(loading()).toBe(1);
  });
});

/** A page whose graph is loaded when the test says so. */
function page() {
  let answer: (snapshot: GraphSnapshot) => void = () => {};
  let loads = 0;
  const replica = new Replica(() => {
    loads += 1;
    return new Promise((resolve) => {
      answer = resolve;
    });
  });
  return { replica, loading: () => loads, answer: (graph: GraphSnapshot) => answer(graph) };
}

function feedOf(broker: ReturnType<typeof memoryBroker>, options: { readonly lingerMs: number }) {
  const { decode } = changes<Entities, Relations>(broker, TOPIC);
  return t.router({
    feed: t.procedure
      .input((input) => input as { readonly lastEventId?: string })
      .subscription(brokerFeed(broker, TOPIC, { ...options, decode })),
  });
}

function added(id: string) {
  return { kind: 'entity', op: 'add', entity: node(id) } as const;
}

function idOf(frame: GraphFrame): string | undefined {
  return 'kind' in frame && frame.kind === 'entity' ? frame.entity.id : undefined;
}
