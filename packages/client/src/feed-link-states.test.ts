import { describe, expect, test } from 'vitest';
import { lostLink, Rig } from '../test/support/rig.ts';
import { entryToken, token } from '../test/support/tokens.ts';

const LONGEST_MS = 30_000;
const ATTACHED = { state: 'attached' };

test('control frames are hidden, keep the token fresh, and are told in order', () => {
  const rig = new Rig();
  const consumer = rig.subscribe({ room: 'a' }, { context: { board: 1 } });
  rig.last.control(token('position', { ordinal: 4 }), 'attached');
  rig.last.control(token('position', { ordinal: 4 }), 'catching-up');
  rig.last.frame(entryToken(5), 5);
  rig.last.control(token('position', { ordinal: 5 }), 'live');
  rig.last.control(token('position', { ordinal: 5 }), 'outage');
  rig.last.control(token('position', { ordinal: 5 }), 'live');
  rig.last.control(token('position', { ordinal: 8 }), 'position');
  expect(consumer.values).toEqual([5]);
  expect(rig.told).toEqual(['attached', 'catching-up', 'live', 'outage', 'live']);
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

test('a socket that moves tells again how the feed stands; its consumer is told what changed', () => {
  const rig = new Rig();
  rig.subscribe();
  for (const feed of ['attached', 'live', 'attached', 'live'] as const)
    rig.last.control(token('position', { ordinal: 4 }), feed);
  rig.last.control(token('position', { ordinal: 4 }), 'catching-up');
  expect(rig.told).toEqual(['attached', 'live', 'catching-up']);
});

test('after a loss, how the feed stands is told again', () => {
  const rig = new Rig();
  rig.subscribe();
  for (let times = 0; times < 2; times += 1) {
    for (const feed of ['attached', 'live'] as const)
      rig.last.control(token('position', { ordinal: 4 }), feed);
    rig.last.fail(lostLink());
    rig.clock.advance(LONGEST_MS);
  }
  expect(rig.told).toEqual(['attached', 'live', 'lost', 'attached', 'live', 'lost']);
});

describe('a snapshot with control frames', () => {
  const end = token('position', { ordinal: 9 });
  /** Its values are counted from 0; control frames have numbers of their own. */
  function within(index: number): string {
    return token('snapshot', { ordinal: 9, index });
  }

  test('is told as a gap before its first value, and that once', () => {
    const rig = new Rig();
    const told: unknown[] = [];
    const consumer = rig.subscribe(undefined, { onValue: () => told.push(rig.told.at(-1)) });
    for (const number of [700, 0]) {
      rig.last.control(within(number), 'catching-up');
      rig.last.control(within(number), 'outage');
      rig.last.frame(within(0), 's1');
      rig.last.control(within(number), 'catching-up');
      rig.last.frame(within(1), 's2');
      rig.last.frame(end, 's3');
      rig.last.control(end, 'live');
    }
    const one = ['gap', 'catching-up', 'outage', 'catching-up', 'live'];
    expect(rig.told).toEqual(['attached', ...one, ...one]);
    expect(told.slice(0, 3)).toEqual(['outage', 'catching-up', 'catching-up']);
    expect(consumer.values).toEqual(['s1', 's2', 's3', 's1', 's2', 's3']);
  });

  test('is told as a gap where it has no values', () => {
    const rig = new Rig();
    rig.subscribe();
    for (let times = 0; times < 2; times += 1) {
      rig.last.control(within(7), 'catching-up');
      rig.last.control(end, 'position');
      rig.last.control(end, 'live');
    }
    const one = ['gap', 'catching-up', 'live'];
    expect(rig.told).toEqual(['attached', ...one, ...one]);
  });

  test('is told as another gap where it begins again, after a loss or without a word', () => {
    const rig = new Rig();
    rig.subscribe();
    rig.last.control(within(7), 'catching-up');
    rig.last.frame(within(0), 's1');
    rig.last.connecting(lostLink());
    rig.last.control(within(9), 'catching-up');
    rig.last.frame(within(0), 's1');
    const one = ['attached', 'gap', 'catching-up'];
    rig.last.control(within(10), 'outage');
    rig.last.frame(within(0), 's1');
    expect(rig.told).toEqual([...one, 'lost', ...one, 'outage', 'gap']);
  });

  test('lets what came before it come again', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(7), 7);
    rig.last.control(within(7), 'catching-up');
    rig.last.control(end, 'position');
    rig.last.frame(entryToken(7), 'again');
    expect(consumer.values).toEqual([7, 'again']);
  });
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
