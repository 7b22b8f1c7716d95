import { expect, test } from 'vitest';
import { fakePage } from '../test/support/page.ts';
import { lostLink, procedureError, Rig } from '../test/support/rig.ts';
import { entryToken } from '../test/support/tokens.ts';
import type { FeedStore } from './index.ts';

test('the next subscription of one path and input goes on from its token, others do not', () => {
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  rig.subscribe({ room: 'a', since: 1 }).unsubscribe();
  const first = rig.subscribe({ room: 'a', since: 1 });
  rig.last.frame(entryToken(7), 7);
  first.unsubscribe();
  // A reload: another link on what was kept.
  const next = new Rig({ store });
  next.subscribe({ since: 1, room: 'a' });
  expect(next.last.op.input).toEqual({ room: 'a', since: 1, lastEventId: entryToken(7) });
  next.subscribe({ since: 1, room: 'b' });
  expect(next.last.token).toBeUndefined();
  next.subscribe({ since: 1, room: 'a' }, { path: 'other' });
  expect(next.last.token).toBeUndefined();
  next.subscribe({ since: 1, room: 'a', lastEventId: 'own' });
  expect(next.last.token).toBe('own');
});

test.each([
  [{ n: 1n }, { n: 2n }],
  [{ n: new Map([[1, 2]]) }, { n: new Map([[1, 3]]) }],
  [{ n: new Set([1]) }, { n: new Set([2]) }],
  [{ n: new Date(0) }, { n: new Date(1) }],
  [{ n: { a: 1, b: 2 } }, { n: { a: 2, b: 1 } }],
  [{ n: [1, 2] }, { n: [2, 1] }],
  [undefined, { n: undefined, m: 1 }],
])('%o and %o are two inputs', (a, b) => {
  const rig = new Rig({ store: new Map() });
  const first = rig.subscribe(a);
  rig.last.frame(entryToken(7), 7);
  first.unsubscribe();
  rig.subscribe(b);
  expect(rig.last.token).toBeUndefined();
  rig.subscribe(a);
  expect(rig.last.token).toBe(entryToken(7));
});

test('a subscription whose token was kept is known as a feed before its first frame', () => {
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  const first = rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  first.unsubscribe();
  const second = rig.subscribe();
  rig.last.fail(lostLink());
  rig.clock.advance(1_000);
  expect([rig.last.token, second.errors]).toEqual([entryToken(7), []]);
});

test('two at a time with one path and input have a token each', () => {
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  const subscribeTwo = (on: Rig) => [on.subscribe(), on.subscribe()];
  const consumers = subscribeTwo(rig);
  const [ahead, behind] = rig.attempts;
  ahead?.frame(entryToken(9), 9);
  behind?.frame(entryToken(2), 2);
  for (const consumer of consumers) consumer.unsubscribe();
  const next = new Rig({ store });
  subscribeTwo(next);
  expect(next.attempts.map((attempt) => attempt.token)).toEqual([entryToken(9), entryToken(2)]);
});

test('one that has ended, and is followed before it was left, gives its place away once', () => {
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  rig.call(rig.operation()).subscribe({ error: () => void rig.subscribe() });
  const [ended] = rig.attempts;
  ended?.frame(entryToken(1), 1);
  ended?.fail(procedureError(401));
  rig.last.frame(entryToken(2), 2);
  rig.subscribe();
  expect(rig.last.token).toBeUndefined();
  rig.last.frame(entryToken(9), 9);
  expect([...store.values()]).toEqual([entryToken(2), entryToken(9)]);
});

test('it is written at once after a quiet time, once a second in a busy one, and when the page is left', () => {
  using page = fakePage();
  const writes: string[] = [];
  const store: FeedStore = {
    get: () => null,
    set: (_, written) => writes.push(written),
    delete: () => {},
  };
  const rig = new Rig({ store });
  const consumer = rig.subscribe();
  const frame = (n: number) => rig.last.frame(entryToken(n), n);
  frame(1);
  expect(writes).toEqual([entryToken(1)]);
  for (let n = 2; n <= 100; n += 1) frame(n);
  expect(writes.length).toBe(1);
  rig.clock.advance(1_000);
  expect(writes).toEqual([1, 100].map((n) => entryToken(n)));
  frame(101);
  page.tell('pagehide');
  expect(writes).toEqual([1, 100, 101].map((n) => entryToken(n)));
  page.tell('pagehide');
  expect(writes.length).toBe(3);
  frame(102);
  page.tell('visibilitychange');
  expect(writes.at(-1)).toEqual(entryToken(102));
  frame(103);
  consumer.unsubscribe();
  expect(writes).toEqual([1, 100, 101, 102, 103].map((n) => entryToken(n)));
  expect(rig.clock.waits).toEqual([]);
});

test('a dead token is not written back by what was still to be written', () => {
  using page = fakePage();
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  const consumer = rig.subscribe();
  rig.last.frame(entryToken(1), 1);
  rig.last.frame(entryToken(2), 2);
  rig.last.refuse('trimmed');
  rig.clock.advance(5_000);
  page.tell('pagehide');
  consumer.unsubscribe();
  expect([...store]).toEqual([]);
});

test.each([412, 400])(
  'where the router does not show feed errors, a %d to a kept token passes, and the token is forgotten',
  (status) => {
    const store = new Map<string, string>();
    const rig = new Rig({ store });
    rig.subscribe();
    rig.last.frame(entryToken(7), 7);
    const consumer = rig.subscribe();
    rig.attempts[0]?.fail(procedureError(status));
    expect([...store]).toEqual([]);
    expect(consumer.errors).toEqual([]);
  },
);

test('a 400 of a connection, such as for too many requests in one message, says nothing of a kept token', () => {
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  const consumer = rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  rig.last.fail(procedureError(400, { path: undefined }));
  expect([consumer.errors.length, [...store.values()]]).toEqual([1, [entryToken(7)]]);
});

test('a procedure that is a feed no more is not sent its token again', () => {
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  rig.subscribe().unsubscribe();
  const first = rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  first.unsubscribe();
  rig.subscribe();
  expect(rig.last.token).toBe(entryToken(7));
  rig.last.frame('8', 8);
  expect([...store]).toEqual([]);
});

test('one that throws, or holds nonsense, never breaks the feed', () => {
  const fail = (): never => {
    throw new Error('no store today');
  };
  const nonsense = ['', 'x'.repeat(513), 7 as unknown as string, null, undefined];
  const stores: FeedStore[] = [
    { get: fail, set: fail, delete: fail },
    ...nonsense.map((text) => ({ get: () => text, set: fail, delete: fail })),
  ];
  for (const store of stores) {
    const rig = new Rig({ store });
    const consumer = rig.subscribe();
    expect(rig.last.token).toBeUndefined();
    rig.last.frame(entryToken(7), 7);
    rig.last.refuse('trimmed');
    rig.last.frame(entryToken(9), 9);
    expect([consumer.values, consumer.errors]).toEqual([[7, 9], []]);
  }
});

test('an input that has no text is not kept, and works', () => {
  const store = new Map<string, string>();
  const rig = new Rig({ store });
  const circle: Record<string, unknown> = {};
  circle.self = circle;
  const consumer = rig.subscribe(circle);
  rig.last.frame(entryToken(7), 7);
  expect([consumer.values, store.size]).toEqual([[7], 0]);
});
