import { expect, test, vi } from 'vitest';
import { countListeners, fakePage } from '../test/support/page.ts';
import { lostLink, Rig } from '../test/support/rig.ts';
import { entryToken, token } from '../test/support/tokens.ts';
import { feedReason } from './index.ts';

const LONGEST_MS = 30_000;

test('leaving cleans up at every step', () => {
  const steps: ((rig: Rig) => void)[] = [
    () => {},
    (rig) => rig.last.started(),
    (rig) => rig.last.frame(entryToken(7), 7),
    (rig) => rig.last.fail(lostLink()),
    (rig) => rig.clock.advance(LONGEST_MS),
    (rig) => rig.last.refuse('trimmed'),
    (rig) => rig.last.refuse('trimmed'),
    (rig) => rig.clock.advance(LONGEST_MS),
    (rig) => rig.last.frame(entryToken(8), 8),
  ];
  for (let left = 0; left < steps.length; left += 1) {
    const abort = countListeners(new AbortController().signal);
    using page = fakePage();
    const store = new Map<string, string>();
    const rig = new Rig({ store });
    const consumer = rig.subscribe(undefined, { signal: abort.target });
    for (const step of steps.slice(0, left + 1)) step(rig);
    consumer.unsubscribe();
    expect(
      rig.attempts.filter(({ open }) => open),
      `step ${left}`,
    ).toEqual([]);
    expect([rig.clock.waits, page.listeners, abort.count()], `step ${left}`).toEqual([[], 0, 0]);
    const before = consumer.envelopes.length;
    const { errors, completed } = consumer;
    const failed = errors.length;
    for (const attempt of rig.attempts) {
      attempt.started();
      attempt.fail(lostLink());
    }
    expect(consumer.envelopes.length).toBe(before);
    expect([consumer.errors.length, consumer.completed]).toEqual([failed, completed]);
    expect(rig.clock.waits).toEqual([]);
  }
});

test('completion is passed on, and cleans up', () => {
  using page = fakePage();
  const rig = new Rig({ store: new Map() });
  const consumer = rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  rig.last.complete();
  expect([consumer.completed, rig.clock.waits, page.listeners]).toEqual([1, [], 0]);
});

const lastWords: [told: string[], play: (rig: Rig) => void][] = [
  [['attached'], (rig) => rig.last.frame(entryToken(7), 7)],
  [['attached'], (rig) => rig.last.frame(token('snapshot', { ordinal: 5 }), 'snapshot')],
  [['attached', 'gap'], (rig) => rig.last.frame(token('position', { ordinal: 5 }), 'snapshot')],
  [['gap'], (rig) => rig.last.refuse('trimmed')],
  [['lost'], (rig) => rig.last.refuse('unavailable')],
];
test.each(lastWords)(
  'a consumer that leaves when it is told %j is told nothing more',
  (told, play) => {
    const seen: string[] = [];
    const rig = new Rig({
      onFeedState({ state }) {
        seen.push(state);
        if (seen.length === told.length) consumer.unsubscribe();
      },
    });
    const consumer = rig.subscribe();
    play(rig);
    expect([seen, consumer.envelopes, consumer.errors]).toEqual([told, [], []]);
    expect([rig.attempts.map(({ open }) => open), rig.clock.waits]).toEqual([[false], []]);
  },
);

test('a consumer may leave when it is given a value, or told of its connection', () => {
  const rig = new Rig();
  const first = rig.subscribe(undefined, { onValue: () => first.unsubscribe() });
  rig.last.frame(entryToken(7), 7);
  rig.last.frame(entryToken(8), 8);
  expect([first.values, rig.last.open]).toEqual([[7], false]);
  const second = rig.subscribe(undefined, { onState: () => second.unsubscribe() });
  rig.last.refuse('unavailable');
  expect([second.states, rig.clock.waits]).toEqual([['connecting'], []]);
});

test('what callbacks throw is thrown outside, and the feed goes on', () => {
  vi.useFakeTimers();
  const rig = new Rig({
    onFeedState: ({ state }) => {
      if (state === 'attached') throw new Error('thrown by onFeedState');
    },
    onGap: () => {
      throw new Error('thrown by onGap');
    },
  });
  const consumer = rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  expect(consumer.values).toEqual([7]);
  expect(() => vi.runAllTimers()).toThrow('thrown by onFeedState');
  rig.last.refuse('trimmed');
  expect(consumer.errors.map(feedReason)).toEqual(['trimmed']);
  expect(() => vi.runAllTimers()).toThrow('thrown by onGap');
  vi.useRealTimers();
});

test('what a consumer throws is thrown outside, and is no lost link', () => {
  vi.useFakeTimers();
  const rig = new Rig();
  const consumer = rig.subscribe(undefined, {
    onValue: (value) => {
      throw new Error(`thrown at ${value}`);
    },
  });
  for (const n of [7, 8]) {
    rig.last.frame(entryToken(n), n);
    expect(() => vi.runAllTimers()).toThrow(`thrown at ${n}`);
  }
  expect([consumer.values, consumer.errors, rig.attempts.length]).toEqual([[7, 8], [], 1]);
  vi.useRealTimers();
});

test('an abort ends a wait', () => {
  const left = new AbortController();
  const rig = new Rig();
  const consumer = rig.subscribe(undefined, { signal: left.signal });
  rig.last.frame(entryToken(7), 7);
  rig.last.fail(lostLink());
  left.abort();
  expect([consumer.completed, rig.clock.waits, rig.attempts.length]).toEqual([1, [], 1]);
});

test('one that was aborted before does not wait', () => {
  const rig = new Rig();
  const consumer = rig.subscribe(undefined, { signal: AbortSignal.abort() });
  rig.last.frame(entryToken(7), 7);
  rig.last.fail(lostLink());
  expect([consumer.completed, rig.clock.waits, rig.attempts.length]).toEqual([1, [], 1]);
});

test('what comes while a link is subscribed to does not get lost, and that link is left', () => {
  const rig = new Rig({ retry: { random: () => 0 } });
  rig.onAttempt = (attempt) => {
    if (rig.attempts.length === 1) attempt.refuse('trimmed');
    if (rig.attempts.length !== 2) return;
    attempt.started({ eventSource: {} });
    attempt.frame(entryToken(8), 8);
    attempt.connecting(lostLink());
  };
  const consumer = rig.subscribe({ lastEventId: entryToken(7) });
  rig.last.frame(entryToken(9), 9);
  expect(consumer.values).toEqual([8, 9]);
  expect(rig.attempts.map(({ open }) => open)).toEqual([false, false, true]);
  expect(rig.attempts.map((attempt) => attempt.token)).toEqual([
    entryToken(7),
    undefined,
    entryToken(8),
  ]);
});

test('a wait ends when the browser comes online', () => {
  using page = fakePage();
  const rig = new Rig();
  rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  rig.last.fail(lostLink());
  expect(rig.attempts.length).toBe(1);
  page.tell('online');
  expect([rig.attempts.length, rig.clock.waits, page.listeners]).toEqual([2, [], 0]);
});

test('a wait ends when the page is shown, and not when it is hidden', () => {
  using page = fakePage();
  const rig = new Rig();
  rig.subscribe();
  rig.last.frame(entryToken(7), 7);
  rig.last.fail(lostLink());
  page.show('hidden');
  expect([rig.attempts.length, rig.clock.waits.length]).toEqual([1, 1]);
  page.show('visible');
  expect([rig.attempts.length, rig.clock.waits, page.listeners]).toEqual([2, [], 0]);
});
