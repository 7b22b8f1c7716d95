import {
  type Broker,
  type Change,
  type Commit,
  changes,
  Feed,
  type Mutation,
  type RelationMutation,
  type Start,
} from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { follow } from './follower.ts';
import { at, type GoodPage, numbered, readAll, readPage, tipOf } from './reading.ts';

/** What becomes of the commits of a store that announces its own writes. */
export function changeLaws(of: GetSubject): void {
  test('the mutations of a transaction are one commit, told once it is in the log, by their addresses in it', async () => {
    const { harness, peerLog } = of();
    const topic = freshTopic();
    const store = changes(harness.broker, topic);
    const found: Promise<number>[] = [];
    const told: Change[] = [];
    store.onChange((change) => {
      told.push(change);
      found.push(tipOf(peerLog, topic).then(({ ordinal }) => ordinal));
    });
    await store.append([entity('first')]);
    const transaction = [entity('a'), entity('b'), relation('a', 'b'), entity('žluťoučký 🐎')];
    expect(await store.append(transaction)).toBe(2);
    expect(told.slice(1)).toEqual(
      transaction.map((mutation, index) => ({ ...mutation, generation: 2, index })),
    );
    for (const [index, ordinal] of (await Promise.all(found)).entries()) {
      expect(ordinal).toBeGreaterThanOrEqual(at(told, index).generation);
    }
    const commits = await readAll(peerLog, topic, 'earliest');
    expect(commits.map(({ entries }) => entries.length)).toEqual([1, 4]);
  });

  test('a feed on another instance brings what listeners hear, field for field', async () => {
    const { harness } = of();
    const topic = freshTopic();
    const store = changes(harness.broker, topic, { tagsOf: (id) => (id === 'a' ? ['red'] : []) });
    const told: Change[] = [];
    store.onChange((change) => told.push(change));
    const commits: Mutation[][] = [
      [entity('a'), entity('b')],
      [relation('a', 'b'), entity('a')],
      [],
      [entity('c')],
    ];
    for (const commit of commits) await store.append(commit);
    expect(await fed(await harness.peer(), topic, told.length)).toEqual(told);
    expect(told.map(({ generation, index }) => [generation, index])).toEqual([
      [1, 0],
      [1, 1],
      [2, 0],
      [2, 1],
      [4, 0],
    ]);
    expect(told[2]).toEqual({ ...relation('a', 'b'), fromTags: ['red'], generation: 2, index: 0 });
  });

  test('appends that nobody waits for are commits in the order of the calls, beside another writer', async () => {
    const { harness, peerLog } = of();
    const topic = freshTopic();
    const store = changes(harness.broker, topic);
    const told: Change[] = [];
    store.onChange((change) => told.push(change));
    const ids = Array.from({ length: 60 }, (_, index) => `n-${index}`);
    const others = changes({ ...harness.broker, log: peerLog } as Broker, topic);
    const [generations] = await Promise.all([
      Promise.all(ids.map((id) => store.append([entity(id)]))),
      Promise.all(ids.map((id) => others.append([entity(`other ${id}`)]))),
    ]);
    expect(generations).toEqual([...generations].sort((a, b) => a - b));
    expect(told.map(idOf)).toEqual(ids);
    expect(told.map(({ generation }) => generation)).toEqual(generations);
    const all: Change[] = [];
    for await (const change of store.replay()) all.push(change);
    expect(all).toHaveLength(120);
    expect(all.map(idOf).filter((id) => !id.startsWith('other'))).toEqual(ids);
  });

  test('whoever reads while a transaction is written has all of it or nothing', async () => {
    const { harness, log, peerLog } = of();
    const topic = freshTopic();
    const store = changes(harness.broker, topic);
    const sizes: number[] = [];
    const look = (commits: readonly Commit[]): void => {
      for (const { entries } of commits) sizes.push(entries.length);
    };
    const live = await follow(peerLog, topic, await tipOf(peerLog, topic), look);
    const writing = Promise.all(
      numbered(40).map((id) =>
        store.append([entity(id), entity(`${id} too`), relation(id, `${id} too`)]),
      ),
    );
    for (let from: Start = 'earliest', read = 0; read < 40; ) {
      const page: GoodPage = await readPage(read % 2 === 0 ? peerLog : log, topic, from);
      look(page.commits);
      from = page.commits.at(-1)?.position ?? page.from;
      read += page.commits.length;
    }
    await writing;
    await live.received(40);
    expect(sizes).toEqual(Array.from({ length: 80 }, () => 3));
  });

  test('a write of which only the latest is kept advances the generation, and tells nobody', async () => {
    const { harness, peerLog } = of();
    const topic = freshTopic();
    const store = changes(harness.broker, topic);
    const told: Change[] = [];
    store.onChange((change) => told.push(change));
    const never = (): never => expect.fail('it was asked what nobody is told');
    for (let count = 1; count <= 5; count += 1) {
      expect(await store.append(never, { retention: 'latest-only' })).toBe(count);
    }
    expect((await tipOf(peerLog, topic)).ordinal).toBe(5);
    await store.append([entity('a')]);
    expect(told.map(({ generation }) => generation)).toEqual([6]);
    expect(await fed(await harness.peer(), topic, 1)).toEqual(told);
  });
}

/** Reads so many values of a feed of the topic from its beginning, and closes the broker. */
async function fed(broker: Broker, topic: string, count: number): Promise<unknown[]> {
  const { decode } = changes(broker, topic);
  const feed = new Feed(broker, { decode, from: 'earliest', lingerMs: 0 });
  const left = new AbortController();
  try {
    const reader = await feed.open({ topic, lastEventId: '', args: {}, signal: left.signal });
    const values: unknown[] = [];
    while (values.length < count) values.push((await reader.next())?.value);
    return values;
  } finally {
    left.abort();
    await broker.close();
  }
}

function entity(id: string): Mutation {
  return { kind: 'entity', op: 'add', entity: { id, type: 'thing', metadata: { id } } };
}

function relation(from: string, to: string): RelationMutation {
  const view = { id: `${from}-${to}`, type: 'likes', from, to, metadata: {} };
  return { kind: 'relation', op: 'relate', relation: view };
}

function idOf(change: Change): string {
  return change.kind === 'entity' ? change.entity.id : change.relation.id;
}
