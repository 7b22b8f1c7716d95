import { type Broker, type Change, type Changes, changes, type Mutation } from '@brokerfeed/core';
import { packToken, parseToken, printToken } from '@brokerfeed/core/wire';
import { brokerFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { BROKERS, type BrokerName, openBroker } from './support/brokers.ts';
import { connect, TRANSPORTS } from './support/client.ts';
import { type Collector, collect } from './support/collector.ts';
import { gate } from './support/gate.ts';
import { startInstance } from './support/instance.ts';
import { TestMeter } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

const TOPIC = 'graph';

describe.each(BROKERS)('on %s', (name) => {
  test('frames over each transport, pulled and pushed, are what a listener in the process hears, field for field', async () => {
    await using world = await World.open(name);
    const { store, meter } = world;
    const router = feedOf(world);
    await using pulling = await startServer(router);
    await using pushing = await startInstance(router);
    const clients = [pulling, pushing].flatMap((server) =>
      TRANSPORTS.map((transport) => connect<typeof router>(server, transport)),
    );
    const feeds = clients.map(({ trpc }) => collect((on) => trpc.feed.subscribe({}, on)));
    await meter.attached(4);

    const heard: Change[] = [];
    const off = store.onChange((change) => heard.push(change));
    for (const commit of COMMITS) await store.append(commit);
    await store.append(() => expect.fail('it was made'), { retention: 'latest-only' });
    await store.append([LAST]);
    off();
    expect(heard).toEqual([
      ...COMMITS.flatMap((commit, at) =>
        commit.map((mutation, index) => ({
          ...mutation,
          ...(mutation.kind === 'relation' && { fromTags: ['red', 'old'] }),
          generation: at + 1,
          index,
        })),
      ),
      { ...LAST, generation: COMMITS.length + 2, index: 0 },
    ]);
    for (const feed of feeds) expect(await feed.take(heard.length)).toEqual(heard);
    expect(meter.of('brokerfeed.feed.pushed')).toBe(2);
    for (const feed of feeds) feed.unsubscribe();
    for (const client of clients) await client[Symbol.asyncDispose]();
  });

  describe.each(TRANSPORTS)('over %s', (transport) => {
    test('a client that is dropped inside a commit gets that whole commit again, at the same addresses', async () => {
      await using world = await World.open(name);
      const slow = gate();
      const router = t.router({
        feed: t.procedure.subscription(
          brokerFeed(world.broker, TOPIC, {
            ...SIGNED,
            decode: world.store.decode,
            map: async (change) => {
              if (idOf(change) === 'c') await slow.pass();
              return change;
            },
          }),
        ),
      });
      await using server = await startServer(router);
      await using client = connect<typeof router>(server, transport);
      using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
      await world.meter.attached(1);
      await world.store.append([thing('before')]);
      slow.close();
      await world.store.append(['a', 'b', 'c', 'd'].map((id) => thing(id)));
      await feed.take(3);
      server.dropSockets();
      slow.open();
      await feed.take(7);
      await world.store.append([thing('after')]);
      await feed.take(8);
      expect(seen(feed)).toEqual([
        ...['1.0 before', '2.0 a', '2.1 b'],
        ...['2.0 a', '2.1 b', '2.2 c', '2.3 d', '3.0 after'],
      ]);
      // Whoever drops what it has, by the address, has everything once.
      expect(new Set(seen(feed)).size).toBe(6);

      // Pushed, it is the same: any token from inside the commit leads before it, and the last one's behind it.
      const resuming = feedOf(world);
      await using pushing = await startInstance(resuming);
      await using other = connect<typeof resuming>(pushing, transport);
      for (const [at, first] of ['2.0 a', '2.0 a', '2.0 a', '3.0 after'].entries()) {
        const lastEventId = unsigned(feed.frames[3 + at]?.id);
        using again = collect((on) => other.trpc.feed.subscribe({ lastEventId }, on));
        await again.take(1);
        expect(seen(again)[0]).toBe(first);
      }
    });

    test('a client that begins at the head has a real position there, before anything is committed', async () => {
      await using world = await World.open(name);
      const router = feedOf(world);
      await using server = await startInstance(router);
      await using client = connect<typeof router>(server, transport);
      await world.store.append([thing('before'), thing('too')]);
      using feed = collect((on) => client.trpc.head.subscribe({}, on));
      expect((await feed.take(1))[0]).toEqual({ feed: 'attached' });
      const head = await world.broker.log.bounds(TOPIC);
      const { epoch, id, ordinal } = parseToken(feed.frames[0]?.id ?? '')?.fields ?? {};
      expect({ epoch, id, ordinal }).toEqual(head.last);
      feed.unsubscribe();
      await world.store.append([thing('while it was away')]);
      const lastEventId = feed.frames[0]?.id;
      using again = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
      await again.take(1);
      expect(seen(again)).toEqual(['2.0 while it was away']);
    });

    test('a position past the head is refused by name at once, and not waited for', async () => {
      await using world = await World.open(name);
      const router = feedOf(world);
      await using server = await startInstance(router);
      await using client = connect<typeof router>(server, transport);
      await world.store.append([thing('a')]);
      const { last } = await world.broker.log.bounds(TOPIC);
      const lastEventId = tokenAt({ ...last, ordinal: 2, id: after(last.id) });
      using feed = collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
      expect(await feed.refusal()).toMatchObject({
        code: 'BAD_REQUEST',
        httpStatus: 400,
        feed: { status: 400, reason: 'ahead' },
      });
      // Over SSE tRPC has answered before it asks the feed.
      expect(feed.started).toBe(transport === 'ws' ? 0 : 1);
      // The commit that it names comes after all, and is not for it.
      await world.store.append([thing('b')]);
      using head = collect((on) => client.trpc.feed.subscribe({ lastEventId: tokenAt(last) }, on));
      await head.take(1);
      expect(seen(head)).toEqual(['2.0 b']);
      expect(feed.values).toEqual([]);
    });

    test('commits that tell nobody count, and a client resumes across them', async () => {
      await using world = await World.open(name);
      const router = feedOf(world);
      await using server = await startInstance(router);
      await using client = connect<typeof router>(server, transport);
      using feed = collect((on) => client.trpc.feed.subscribe({}, on));
      await world.meter.attached(1);
      const typed = async (): Promise<void> => {
        for (let key = 0; key < 3; key += 1) {
          await world.store.append([thing('a draft')], { retention: 'latest-only' });
        }
      };
      await typed();
      await world.store.append([thing('a')]);
      await typed();
      await feed.take(1);
      server.cut();
      await typed();
      expect(await world.store.append([thing('b')])).toBe(11);
      await feed.take(2);
      expect(seen(feed)).toEqual(['4.0 a', '11.0 b']);
    });
  });

  test('headers stay apart from values, and are those of every entry of the commit', async () => {
    await using world = await World.open(name);
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(world.broker, TOPIC, {
          ...SIGNED,
          map: (value, { headers, generation, index }) => ({ value, headers, generation, index }),
        }),
      ),
    });
    await using server = await startInstance(router);
    await using client = connect<typeof router>(server, 'ws');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await world.meter.attached(1);
    const headers = { traceparent: '00-a', value: 'no value', generation: 'nor a number' };
    await world.broker.log.append(TOPIC, ['{"headers":1}', '2'], { headers });
    await world.broker.log.append(TOPIC, '3');
    expect(await feed.take(3)).toEqual([
      { value: { headers: 1 }, headers, generation: 1, index: 0 },
      { value: 2, headers, generation: 1, index: 1 },
      { value: 3, headers: {}, generation: 2, index: 0 },
    ]);
  });
});

/** Everything that a change can say. */
const COMMITS: readonly (readonly Mutation[])[] = [
  [
    {
      kind: 'entity',
      op: 'add',
      entity: {
        id: 'ann',
        type: 'person',
        subtype: 'author',
        service: 'hr',
        metadata: {
          name: 'Ann 🐎 \u2028',
          tags: ['red'],
          nested: { n: [1, null, -0.5, { a: {} }] },
        },
      },
    },
    { kind: 'entity', op: 'add', entity: { id: 'ben', type: 'person', metadata: null } },
    relation('relate', { weight: 1 }),
    { kind: 'entity', op: 'update', entity: { id: 'ben', type: 'person', metadata: { x: 'y' } } },
  ],
  [relation('update', { weight: 2 })],
  [
    relation('unrelate', { weight: 2 }),
    {
      kind: 'entity',
      op: 'remove',
      entity: { id: 'ben', type: 'person', subtype: 'reader', service: 'hr', metadata: { x: 'y' } },
    },
  ],
];
const LAST = thing('the last');

/** A store that announces its own writes, on one broker. */
class World implements AsyncDisposable {
  readonly broker: Broker;
  readonly meter: TestMeter;
  readonly store: Changes;

  private constructor(broker: Broker, meter: TestMeter) {
    this.broker = broker;
    this.meter = meter;
    this.store = changes(broker, TOPIC, {
      tagsOf: (id) => (id === 'ann' ? ['red', 'old'] : undefined),
    });
  }

  static async open(name: BrokerName): Promise<World> {
    const meter = new TestMeter();
    return new World(await openBroker(name, meter), meter);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.broker.close();
  }
}

/** Feeds that take unsigned tokens, so that a test can make its own; one says where it begins. */
function feedOf({ broker, store }: World) {
  const procedure = t.procedure.input(z.object({ lastEventId: z.string().optional() }));
  const options = { decode: store.decode, lingerMs: 0 };
  return t.router({
    feed: procedure.subscription(brokerFeed(broker, TOPIC, options)),
    head: procedure.subscription(brokerFeed(broker, TOPIC, { ...options, control: true })),
  });
}

function tokenAt(place: { epoch: string; id: string; ordinal: number }): string {
  return printToken(packToken({ kind: 'position', index: 0, ...place }, undefined), undefined);
}

/** The same token as a feed gives it out that does not sign. */
function unsigned(token: string | undefined): string {
  const fields = parseToken(token ?? '')?.fields;
  return fields === undefined
    ? expect.fail('the token cannot be parsed')
    : printToken(packToken(fields, undefined), undefined);
}

/** The name of a later commit: a count, or a time and a count. */
function after(id: string): string {
  return id.replace(/^\d+/, (count) => String(BigInt(count) + 1n));
}

function seen({ values }: Collector): string[] {
  return (values as Change[]).map(
    (change) => `${change.generation}.${change.index} ${idOf(change)}`,
  );
}

function idOf(change: Change): string {
  return change.kind === 'entity' ? change.entity.id : change.relation.id;
}

function thing(id: string): Mutation {
  return { kind: 'entity', op: 'add', entity: { id, type: 'thing', metadata: { id } } };
}

function relation(op: 'relate' | 'update' | 'unrelate', metadata: object): Mutation {
  const view = { id: 'ann-ben', type: 'knows', from: 'ann', to: 'ben', subtype: 'well' };
  return { kind: 'relation', op, relation: { ...view, service: 'hr', metadata } };
}
