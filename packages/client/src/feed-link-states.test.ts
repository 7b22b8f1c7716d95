import { expect, test } from 'vitest';
import { lostLink, Rig } from '../test/support/rig.ts';
import { entryToken, token } from '../test/support/tokens.ts';

const LONGEST_MS = 30_000;
const ATTACHED = { state: 'attached' };

test('control frames are hidden, keep the token fresh, and are told in order', () => {
  const rig = new Rig();
  const consumer = rig.subscribe({ room: 'a' }, { context: { board: 1 } });
  rig.last.control(token('position', { ordinal: 4 }), 'attached');
  rig.last.frame(entryToken(5), 5);
  rig.last.control(token('position', { ordinal: 5 }), 'outage');
  rig.last.control(token('position', { ordinal: 5 }), 'live');
  rig.last.control(token('position', { ordinal: 8 }), 'position');
  expect(consumer.values).toEqual([5]);
  expect(rig.told).toEqual(['attached', 'outage', 'live']);
  expect(rig.subscriptions[0]).toEqual({
    path: 'feed',
    input: { room: 'a' },
    context: { board: 1 },
  });
  rig.last.fail(lostLink());
  rig.clock.advance(LONGEST_MS);
  expect(rig.last.token).toBe(token('position', { ordinal: 8 }));
});

test('without control frames, a feed is told to stand before its first value', () => {
  const rig = new Rig();
  const told: unknown[] = [];
  rig.subscribe(undefined, { onValue: () => told.push([...rig.told]) });
  rig.last.started();
  for (const n of [1, 2]) rig.last.frame(entryToken(n), n);
  expect(told).toEqual([['attached'], ['attached']]);
});

test('a socket that comes back by itself was lost until it is started again', () => {
  const rig = new Rig();
  rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  const error = lostLink();
  rig.last.connecting(error);
  rig.last.started();
  const told = [ATTACHED, { state: 'lost', error, retryMs: undefined }, ATTACHED];
  expect(rig.states).toEqual(told);
  rig.last.control(token('position', { ordinal: 7 }), 'attached');
  expect(rig.states).toEqual(told);
});

test('an event stream is not believed before its first frame', () => {
  const rig = new Rig();
  rig.subscribe();
  rig.last.started({ eventSource: {} });
  rig.last.frame(entryToken(7), 7);
  rig.last.connecting(lostLink());
  rig.clock.advance(LONGEST_MS);
  rig.last.started({ eventSource: {} });
  expect(rig.told).toEqual(['attached', 'lost']);
  rig.last.frame(entryToken(8), 8);
  expect(rig.told).toEqual(['attached', 'lost', 'attached']);
});

test.each([{ feed: 'other' }, { feed: 'attached', more: 1 }, ['attached'], 'attached', null])(
  'a value like %j of the application is none',
  (value) => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    rig.last.frame(token('position', { ordinal: 4 }), value);
    rig.last.frame(entryToken(5), { feed: 'attached' });
    expect(consumer.values).toEqual([value, { feed: 'attached' }]);
  },
);
