import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AppendOptions, Broker } from './broker.ts';
import type { Change, EntityMutation, Mutation, RelationMutation } from './change.ts';
import { changeOf } from './change.ts';
import { changes, localChanges } from './changes.ts';
import { BrokerError } from './errors.ts';
import { Feed } from './feed.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';

const TOPIC = 'graph';

test('a listener is called once for each mutation, after the commit, and all of a commit have one generation', async () => {
  await using broker = memoryBroker();
  const store = changes(broker, TOPIC);
  await store.append([entity('add', 'before')]);
  const told: Change[] = [];
  const inLog: Promise<number>[] = [];
  store.onChange((change) => {
    told.push(change);
    inLog.push(broker.log.bounds(TOPIC).then(({ last }) => last.ordinal));
  });
  const transaction = [
    entity('add', 'a'),
    entity('add', 'b'),
    relation('relate', 'ab', 'a', 'b'),
    entity('update', 'a'),
  ];
  expect(await store.append(transaction)).toBe(2);
  expect(told).toEqual(
    transaction.map((mutation, index) => ({ ...mutation, generation: 2, index })),
  );
  expect(await Promise.all(inLog)).toEqual([2, 2, 2, 2]);
});

test('a commit is one commit of the log, with an entry for each mutation', async () => {
  await using broker = memoryBroker();
  const store = changes(broker, TOPIC);
  await store.append([entity('add', 'a'), entity('remove', 'b')], { headers: { by: 'x' } });
  const page = await broker.log.page(TOPIC, 'earliest', 10);
  if (page.verdict !== 'ok') expect.fail(page.verdict);
  const [commit] = page.commits;
  expect(page.commits).toHaveLength(1);
  expect(commit?.entries.map(({ headers }) => headers.by)).toEqual(['x', 'x']);
  expect(
    commit?.entries.map(({ value }, index) => changeOf({ value, generation: 1, index })),
  ).toEqual([
    { ...entity('add', 'a'), generation: 1, index: 0 },
    { ...entity('remove', 'b'), generation: 1, index: 1 },
  ]);
});

test('a removal carries what it removed', async () => {
  await using broker = memoryBroker();
  const store = changes<{ person: { name: string } }>(broker, TOPIC);
  const told: unknown[] = [];
  store.onChange((change) => told.push(change));
  const gone = {
    id: 'ann',
    type: 'person',
    subtype: 'author',
    service: 'hr',
    metadata: { name: 'Ann' },
  } as const;
  await store.append([{ kind: 'entity', op: 'remove', entity: gone }]);
  expect(told).toEqual([{ kind: 'entity', op: 'remove', entity: gone, generation: 1, index: 0 }]);
});

test('a relation carries the tags that its ends have when the change is made, and none of ends that are gone', async () => {
  await using broker = memoryBroker();
  const tags = new Map([
    ['a', ['red']],
    ['b', []],
    ['c', ['blue', 'old']],
  ]);
  const store = changes(broker, TOPIC, { tagsOf: (id) => tags.get(id) });
  const told: Change[] = [];
  store.onChange((change) => told.push(change));
  const appended = store.append([
    relation('relate', 'ab', 'a', 'b'),
    relation('relate', 'ca', 'c', 'a'),
  ]);
  tags.set('a', ['changed since']);
  tags.delete('c');
  await Promise.all([
    appended,
    store.append([entity('remove', 'c'), relation('unrelate', 'ca', 'c', 'a')]),
    store.append([{ ...relation('unrelate', 'ab', 'a', 'b'), toTags: ['as the store kept them'] }]),
  ]);
  const seen = told
    .filter((change) => change.kind === 'relation')
    .map(({ fromTags, toTags }) => ({ fromTags, toTags }));
  expect(seen).toEqual([
    { fromTags: ['red'] },
    { fromTags: ['blue', 'old'], toTags: ['red'] },
    { toTags: ['changed since'] },
    { fromTags: ['changed since'], toTags: ['as the store kept them'] },
  ]);
  expect(told.some((change) => 'fromTags' in change && change.fromTags === undefined)).toBe(false);
});

test('a latest-only write, and a commit that did nothing, advance the generation and tell nobody', async () => {
  await using broker = memoryBroker();
  const store = changes(broker, TOPIC);
  const told: Change[] = [];
  store.onChange((change) => told.push(change));
  let made = 0;
  const make = (): Mutation[] => {
    made += 1;
    return [entity('update', 'draft')];
  };
  expect(await store.append([entity('add', 'a')])).toBe(1);
  expect(await store.append(make, { retention: 'latest-only' })).toBe(2);
  expect(await store.append([])).toBe(3);
  expect(await store.append([entity('add', 'b')])).toBe(4);
  expect(made).toBe(0);
  expect(told.map(({ generation }) => generation)).toEqual([1, 4]);

  const feed = new Feed(broker, { decode: store.decode, from: 'earliest', lingerMs: 0 });
  const left = new AbortController();
  const reader = await feed.open({ topic: TOPIC, lastEventId: '', args: {}, signal: left.signal });
  expect([(await reader.next())?.value, (await reader.next())?.value]).toEqual(told);
  left.abort();
  const replayed: Change[] = [];
  for await (const change of store.replay()) replayed.push(change);
  expect(replayed).toEqual(told);
});

describe('in one process', () => {
  test('no change is made while nobody listens, and the generations go on', async () => {
    const store = localChanges();
    let made = 0;
    const make = (): Mutation[] => {
      made += 1;
      return [entity('add', 'a')];
    };
    await store.append(make);
    const told: Change[] = [];
    const off = store.onChange((change) => told.push(change));
    await store.append(make);
    await store.append(make, { retention: 'latest-only' });
    off();
    await store.append(make);
    expect(await store.append(make)).toBe(5);
    expect(made).toBe(1);
    expect(told).toEqual([{ ...entity('add', 'a'), generation: 2, index: 0 }]);
  });

  test('a listener that writes is told of that after the rest of the commit, like everybody', () => {
    const store = localChanges();
    const told: string[] = [];
    store.onChange(({ generation, index }) => {
      told.push(`first ${generation}.${index}`);
      if (generation === 1) void store.append([entity('add', 'c')]);
    });
    store.onChange(({ generation, index }) => told.push(`second ${generation}.${index}`));
    void store.append([entity('add', 'a'), entity('add', 'b')]);
    expect(told).toEqual(
      ['1.0', '1.1', '2.0', '3.0'].flatMap((at) => [`first ${at}`, `second ${at}`]),
    );
  });

  test('a replay is refused: there is no log', async () => {
    await expect(localChanges().replay().next()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  });
});

test('a listener that throws or rejects is logged, and keeps the change from nobody', async () => {
  const logged: unknown[] = [];
  const nothing = (): void => {};
  const logger = {
    debug: nothing,
    info: nothing,
    warn: nothing,
    error: (fields: object, event: string) => logged.push([event, fields]),
  };
  await using broker = memoryBroker({ logger });
  const store = changes(broker, TOPIC);
  const failure = new Error('listener');
  store.onChange(() => {
    throw failure;
  });
  store.onChange(async () => {
    await turn();
    throw failure;
  });
  const told: Change[] = [];
  store.onChange((change) => told.push(change));
  expect(await store.append([entity('add', 'a')])).toBe(1);
  expect(told).toHaveLength(1);
  const line = ['brokerfeed.changes.listener', { err: failure, generation: 1, index: 0 }];
  expect(logged).toEqual([line]);
  await expect.poll(() => logged).toEqual([line, line]);
});

test('a listener that is removed hears nothing more, also of the commit under way', async () => {
  await using broker = memoryBroker();
  const store = changes(broker, TOPIC);
  const told: string[] = [];
  store.onChange(({ index }) => {
    told.push(`first ${index}`);
    if (index === 0) off();
  });
  const off = store.onChange(({ index }) => told.push(`second ${index}`));
  await store.append([entity('add', 'a'), entity('add', 'b')]);
  expect(told).toEqual(['first 0', 'first 1']);
});

test('appends that nobody waits for are written and told in the order of the calls', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.record({ size: fc.integer({ min: 0, max: 4 }), turns: fc.integer({ min: 0, max: 3 }) }),
        {
          minLength: 1,
          maxLength: 12,
        },
      ),
      async (commits) => {
        await using broker = memoryBroker();
        const turns = commits.map((commit) => commit.turns);
        // Later appends would overtake earlier ones, were they not held.
        const store = changes(
          slowed(broker, () => turns.shift() ?? 0),
          TOPIC,
        );
        const told: Change[] = [];
        store.onChange((change) => told.push(change));
        const appends = commits.map(({ size }, at) =>
          store.append(Array.from({ length: size }, (_, n) => entity('add', `${at}.${n}`))),
        );
        expect(await Promise.all(appends)).toEqual(commits.map((_, at) => at + 1));
        const expected = commits.flatMap(({ size }, at) =>
          Array.from({ length: size }, (_, index) => [`${at}.${index}`, at + 1, index]),
        );
        const idOf = (change: Change): unknown[] => [
          (change as EntityMutation).entity.id,
          change.generation,
          change.index,
        ];
        expect(told.map(idOf)).toEqual(expected);
        const replayed: Change[] = [];
        for await (const change of store.replay()) replayed.push(change);
        expect(replayed).toEqual(told);
      },
    ),
    { numRuns: 40 },
  );
});

describe('an append that fails', () => {
  test('is followed by nothing but its own repeat, and what waited behind it fails too', async () => {
    await using broker = memoryBroker();
    const down = failing(broker, [2, 3]);
    const store = changes(down, TOPIC);
    const told: Change[] = [];
    store.onChange((change) => told.push(change));
    const keyed = (id: string): Promise<number> =>
      store.append([entity('add', id)], { idempotencyKey: id });
    const settled = await Promise.allSettled([keyed('a'), keyed('b'), keyed('c')]);
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected']);
    await expect(keyed('c')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: 'an earlier append of the change feed failed: repeat that one first',
    });
    // The log has it, though its answer was lost, and fails once more.
    await expect(keyed('b')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await keyed('b')).toBe(2);
    expect(await keyed('c')).toBe(3);
    expect(told.map(({ generation }) => generation)).toEqual([1, 2, 3]);
    expect(await idsIn(broker)).toEqual(['a', 'b', 'c']);
  });

  test('without a key is the last', async () => {
    await using broker = memoryBroker();
    const store = changes(failing(broker, [1]), TOPIC);
    await expect(store.append([entity('add', 'a')])).rejects.toThrow('the answer was lost');
    for (const options of [{}, { idempotencyKey: 'a' }]) {
      await expect(store.append([entity('add', 'b')], options)).rejects.toMatchObject({
        code: 'UNAVAILABLE',
        message: 'an earlier append of the change feed failed: none can follow it',
      });
    }
  });

  test('because it was refused has written nothing, and holds up nobody', async () => {
    await using broker = memoryBroker({ maxEntryBytes: 1000 });
    const store = changes(broker, TOPIC);
    const long = entity('add', 'x'.repeat(2000));
    await expect(store.append([entity('add', 'a'), long])).rejects.toMatchObject({
      code: 'ENTRY_TOO_LARGE',
    });
    expect(await store.append([entity('add', 'b')])).toBe(1);
  });
});

test('a repeat under an idempotency key is told once', async () => {
  await using broker = memoryBroker();
  const store = changes(broker, TOPIC);
  const told: Change[] = [];
  store.onChange((change) => told.push(change));
  const once = { idempotencyKey: 'row-1' };
  await store.append([entity('add', 'a')], once);
  await store.append([entity('add', 'b')]);
  expect(await store.append([entity('add', 'a')], once)).toBe(1);
  expect(told.map(({ generation }) => generation)).toEqual([1, 2]);
});

test('a log that is made anew counts from one again, and is told of', async () => {
  const memory = memoryStore();
  await using broker = memoryBroker({ store: memory });
  const store = changes(broker, TOPIC);
  const told: Change[] = [];
  store.onChange((change) => told.push(change));
  await store.append([entity('add', 'a')]);
  memory.drop(TOPIC);
  expect(await store.append([entity('add', 'b')])).toBe(1);
  expect(told).toHaveLength(2);
});

test('what is no change is refused, with the reason, and nothing is written', async () => {
  await using broker = memoryBroker();
  const store = changes(broker, TOPIC);
  const bad: [unknown, string][] = [
    [{ kind: 'node', op: 'add' }, `a change is of kind 'entity' or 'relation', not "node"`],
    [
      { ...entity('add', 'a'), op: 'relate' },
      `the op of a change of kind 'entity' is add, update, remove, not "relate"`,
    ],
    [entity('add', ''), 'entity.id is a text, not an empty string'],
    [
      { kind: 'relation', op: 'relate', relation: { id: 'r', type: 'x', from: 'a' } },
      'relation.to is a text, not undefined',
    ],
    [
      { kind: 'relation', op: 'update' },
      "a change of kind 'relation' has its relation, not undefined",
    ],
    [
      { ...entity('add', 'a'), size: 1n },
      'a mutation has no JSON: Do not know how to serialize a BigInt',
    ],
  ];
  for (const [mutation, message] of bad) {
    const appending = store.append([entity('add', 'good'), mutation as Mutation]);
    await expect(appending).rejects.toMatchObject({ code: 'VALUE_INVALID', message });
  }
  const retention = 'newest' as 'all';
  await expect(store.append([], { retention })).rejects.toMatchObject({ code: 'OPTION_INVALID' });
  expect((await broker.log.bounds(TOPIC)).last.ordinal).toBe(0);
  for (const value of ['{', 'null', '{"kind":"entity"}']) {
    expect(() => changeOf({ value, generation: 1, index: 0 })).toThrow(BrokerError);
  }
});

test('what cannot be one is refused at construction', async () => {
  await using broker = memoryBroker();
  const code = (value: string) => expect.objectContaining({ code: value });
  expect(() => changes(broker, '')).toThrow(code('TOPIC_INVALID'));
  expect(() => changes(broker, TOPIC, { tagsOf: 5 as never })).toThrow(code('OPTION_INVALID'));
  expect(() => localChanges(null as never)).toThrow(code('OPTION_INVALID'));
  expect(() => localChanges().onChange('listener' as never)).toThrow(code('OPTION_INVALID'));
});

test('a replay whose log is trimmed under it says so', async () => {
  const memory = memoryStore();
  await using broker = memoryBroker({ store: memory });
  const store = changes(broker, TOPIC);
  for (let n = 0; n < 1500; n += 1) await store.append([entity('add', `${n}`)]);
  const replay = store.replay();
  await replay.next();
  memory.trim(TOPIC, 1);
  const rest = async (): Promise<void> => {
    for await (const _ of replay);
  };
  await expect(rest()).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: 'the changes were lost while they were read: trimmed',
  });
});

function entity(op: EntityMutation['op'], id: string): EntityMutation {
  return { kind: 'entity', op, entity: { id, type: 'thing', metadata: { size: 1 } } };
}

function relation(
  op: RelationMutation['op'],
  id: string,
  from: string,
  to: string,
): RelationMutation {
  return { kind: 'relation', op, relation: { id, type: 'likes', from, to, metadata: {} } };
}

async function idsIn(broker: Broker): Promise<string[]> {
  const ids: string[] = [];
  for await (const change of changes(broker, TOPIC).replay()) {
    ids.push(change.kind === 'entity' ? change.entity.id : change.relation.id);
  }
  return ids;
}

/** A broker on which each append begins some turns of the event loop late. */
function slowed(broker: Broker, turnsOf: () => number): Broker {
  return onAppend(broker, async (append) => {
    for (let turns = turnsOf(); turns > 0; turns -= 1) await turn();
    return append();
  });
}

/** A broker that writes all, and loses the answers of some appends, counted from 1. */
function failing(broker: Broker, lost: readonly number[]): Broker {
  let count = 0;
  return onAppend(broker, async (append) => {
    count += 1;
    const fails = lost.includes(count);
    const position = await append();
    if (fails) throw new BrokerError('UNAVAILABLE', 'the answer was lost');
    return position;
  });
}

type Append = Broker['log']['append'];

function onAppend(
  broker: Broker,
  run: (append: () => ReturnType<Append>) => ReturnType<Append>,
): Broker {
  const { log } = broker;
  const append: Append = (topic, values, options: AppendOptions = {}) =>
    run(() => log.append(topic, values, options));
  const { page, follow, bounds } = log;
  return {
    name: broker.name,
    log: {
      observer: log.observer,
      append,
      page: page.bind(log),
      follow: follow.bind(log),
      bounds: bounds.bind(log),
    },
    close: () => broker.close(),
    [Symbol.asyncDispose]: () => broker.close(),
  };
}
