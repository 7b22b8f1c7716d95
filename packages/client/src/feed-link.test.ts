import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { lostLink, procedureError, Rig, refusal } from '../test/support/rig.ts';
import { entryToken, token } from '../test/support/tokens.ts';
import { feedReason } from './index.ts';

const LONGEST_MS = 30_000;
const ATTACHED = { state: 'attached' };

describe('what is no feed', () => {
  test.each(['query', 'mutation'] as const)('a %s passes as it is', (type) => {
    const rig = new Rig();
    const op = rig.operation({ n: 1 }, { type });
    rig.call(op).subscribe({});
    expect(rig.last.op).toBe(op);
  });

  test('a subscription with other ids, or none, passes as it is, errors too', () => {
    const rig = new Rig({ store: new Map() });
    const consumer = rig.subscribe({ n: 1, lastEventId: '3' });
    const sent = [
      { result: { type: 'started' } },
      { result: { type: 'data', id: '4', data: { id: '4', data: 'a' } } },
      { result: { type: 'data', id: '4', data: { id: '4', data: 'a' } } },
      { result: { type: 'data', data: { data: 'untracked' } } },
      { result: { type: 'data', id: entryToken(1), data: { id: '', data: { feed: 'attached' } } } },
    ] as const;
    for (const envelope of sent) rig.last.send(envelope);
    expect(consumer.envelopes).toEqual(sent);
    expect(consumer.envelopes.every((envelope, n) => envelope === sent[n])).toBe(true);
    expect(rig.last.op.input).toEqual({ n: 1, lastEventId: '3' });
    const error = lostLink();
    rig.last.fail(error);
    expect(consumer.errors).toEqual([error]);
    expect([rig.attempts.length, rig.states]).toEqual([1, []]);
  });

  test('a subscription whose first id happens to look like a token loses nothing', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(9), 1);
    rig.last.frame('8', 2);
    rig.last.frame(entryToken(9), 3);
    expect(consumer.values).toEqual([1, 2, 3]);
  });
});

describe('repeats', () => {
  test('a commit that is received again after a loss is dropped as far as it came', () => {
    const rig = new Rig({ retry: { random: () => 0 } });
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(1), 'a');
    rig.last.frame(entryToken(2, 0, 3), 'b');
    rig.last.frame(entryToken(2, 1, 3), 'c');
    rig.last.fail(lostLink());
    expect(rig.last.token).toBe(entryToken(2, 1, 3));
    for (const [index, value] of ['b', 'c', 'd'].entries()) {
      rig.last.frame(entryToken(2, index, 3), value);
    }
    expect(consumer.values).toEqual(['a', 'b', 'c', 'd']);
    expect(consumer.errors).toEqual([]);
  });

  test('a link behind that comes back by itself is seen through too', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(2, 0, 2), 'a');
    rig.last.started();
    rig.last.frame(entryToken(2, 0, 2), 'a');
    rig.last.frame(entryToken(2, 1, 2), 'b');
    expect(consumer.values).toEqual(['a', 'b']);
  });

  test('a commit that comes again after later ones, from a socket that the client moves to, is dropped', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    const frames: [number, number, number][] = [
      [2, 0, 2],
      [2, 1, 2],
      [3, 0, 1],
      [2, 0, 2],
      [4, 0, 1],
    ];
    for (const [generation, index, size] of frames) {
      rig.last.frame(entryToken(generation, index, size), `${generation}.${index}`);
    }
    expect(consumer.values).toEqual(['2.0', '2.1', '3.0', '4.0']);
    rig.last.fail(lostLink());
    rig.clock.advance(LONGEST_MS);
    expect(rig.last.token).toBe(entryToken(4));
  });

  test('another incarnation of the log has its own numbers', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(7), 'old');
    rig.last.frame(entryToken(1, 0, 1, { epoch: 'CAcGBQQDAgEA' }), 'new');
    expect(consumer.values).toEqual(['old', 'new']);
  });

  test('a log that was rolled back uses its numbers again, for other entries', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    for (const n of [5, 6, 7]) rig.last.frame(entryToken(n, 0, 1, { id: `100-${n}` }), n);
    // The server had a gap, and nothing to say about it.
    rig.last.frame(entryToken(6, 0, 1, { id: '200-0' }), 'other 6');
    rig.last.frame(entryToken(7, 0, 1, { id: '200-1' }), 'other 7');
    expect(consumer.values).toEqual([5, 6, 7, 'other 6', 'other 7']);
  });

  test.each([
    ['a snapshot', (rig: Rig) => rig.last.frame(token('position', { ordinal: 3 }), 'snapshot')],
    ['a position', (rig: Rig) => rig.last.control(token('position', { ordinal: 3 }), 'position')],
  ])('after %s that lies behind, entries are given again', (_, goBack) => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    for (const n of [3, 9]) rig.last.frame(entryToken(n), n);
    goBack(rig);
    rig.last.frame(entryToken(4), 4);
    expect(consumer.values.at(-1)).toBe(4);
  });
});

describe('a gap', () => {
  test.each([
    'trimmed',
    'epoch',
    'forked',
    'snapshot',
    'ahead',
    'signature',
    'malformed',
    'too-long',
  ] as const)('%s starts afresh at once, and the dead token is never sent again', (reason) => {
    const store = new Map<string, string>();
    const rig = new Rig({ store });
    const consumer = rig.subscribe({ room: 'a' });
    rig.last.frame(entryToken(7), 7);
    rig.last.refuse(reason);
    expect(rig.attempts.length).toBe(2);
    expect(rig.last.op.input).toEqual({ room: 'a' });
    expect([...store]).toEqual([]);
    expect(rig.states).toEqual([ATTACHED, { state: 'gap', reason }]);
    rig.last.frame(entryToken(3), 3);
    expect(consumer.values).toEqual([7, 3]);
    expect(rig.told).toEqual(['attached', 'gap', 'attached']);
    expect([consumer.errors, consumer.states]).toEqual([[], ['connecting']]);
  });

  test('a token that the caller brought is forgotten too', () => {
    const rig = new Rig();
    rig.subscribe({ room: 'a', lastEventId: entryToken(7) });
    rig.last.refuse('trimmed');
    expect(rig.last.op.input).toEqual({ room: 'a' });
  });

  test("with 'error' it ends the subscription, and the dead token is forgotten", () => {
    const store = new Map<string, string>();
    const rig = new Rig({ onGap: 'error', store });
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(7), 7);
    rig.last.refuse('trimmed');
    expect(consumer.errors.map(feedReason)).toEqual(['trimmed']);
    expect([rig.attempts.length, store.size, rig.told]).toEqual([1, 0, ['attached', 'gap']]);
    rig.subscribe();
    expect(rig.last.token).toBeUndefined();
  });

  test('a function decides for each', () => {
    const asked: unknown[] = [];
    const rig = new Rig({
      onGap: (gap, { path, input }) => {
        asked.push([gap.reason, path, input]);
        return gap.reason === 'trimmed' ? 'restart' : 'error';
      },
    });
    const consumer = rig.subscribe({ room: 'a' });
    rig.last.refuse('trimmed');
    rig.last.frame(entryToken(1), 1);
    expect(consumer.errors).toEqual([]);
    rig.last.refuse('epoch');
    expect(consumer.errors.map(feedReason)).toEqual(['epoch']);
    expect(asked).toEqual([
      ['trimmed', 'feed', { room: 'a' }],
      ['epoch', 'feed', { room: 'a' }],
    ]);
  });

  test('gaps in a row wait longer and longer', () => {
    const rig = new Rig({ retry: { random: () => 0.5 } });
    rig.subscribe();
    for (const ms of [1_000, 2_000, 4_000]) {
      rig.last.refuse('trimmed');
      if (ms > 1_000) {
        expect(rig.clock.waits).toEqual([ms / 2]);
        rig.clock.advance(ms / 2);
      }
    }
    expect(rig.attempts.length).toBe(4);
  });

  test('a mistake in the server is none: it is passed on', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    rig.last.refuse('topic');
    expect(consumer.errors.map(feedReason)).toEqual(['topic']);
    expect(rig.attempts.length).toBe(1);
  });

  test('a snapshot of the server is told before its first value, and passes', () => {
    const rig = new Rig();
    const told: unknown[] = [];
    const consumer = rig.subscribe(undefined, { onValue: () => told.push(rig.told.length) });
    rig.last.frame(entryToken(1), 'old');
    for (const index of [0, 1]) rig.last.frame(token('snapshot', { ordinal: 5, index }), index);
    rig.last.frame(token('position', { ordinal: 5 }), 2);
    rig.last.frame(entryToken(6), 'live');
    expect(consumer.values).toEqual(['old', 0, 1, 2, 'live']);
    expect([told, rig.states]).toEqual([
      [1, 2, 2, 2, 2],
      [ATTACHED, { state: 'gap', reason: undefined }],
    ]);
    // Again from its start, as after a loss inside it: the consumer has to begin anew.
    for (const index of [0, 1, 0, 1])
      rig.last.frame(token('snapshot', { ordinal: 9, index }), index);
    expect(rig.told).toEqual(['attached', 'gap', 'gap', 'gap']);
    rig.last.started();
    rig.last.frame(token('position', { ordinal: 9 }), 'the whole of it');
    expect(rig.told.length).toBe(5);
  });
});

describe('an outage', () => {
  test.each([
    ['503 of the feed', refusal('unavailable')],
    ['503 of a closing server', refusal('closing')],
    ['502 of a middleware', procedureError(502)],
    ['a lost link', lostLink()],
  ])('%s is tried again with the newest token', (_, error) => {
    const rig = new Rig({ retry: { random: () => 0.5 } });
    const consumer = rig.subscribe({ room: 'a' });
    rig.last.frame(entryToken(7), 7);
    rig.last.fail(error);
    expect([rig.attempts.length, rig.clock.waits]).toEqual([1, [500]]);
    expect(rig.states).toEqual([ATTACHED, { state: 'lost', error, retryMs: 500 }]);
    expect(consumer.states).toEqual(['connecting']);
    rig.clock.advance(500);
    expect(rig.last.op.input).toEqual({ room: 'a', lastEventId: entryToken(7) });
    expect(consumer.errors).toEqual([]);
  });

  test('waits are anywhere below a bound that doubles up to the longest, and begin anew after a frame', () => {
    const tries = fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), {
      minLength: 1,
      maxLength: 12,
    });
    const bounds = {
      base: fc.integer({ min: 1, max: 5_000 }),
      max: fc.integer({ min: 1, max: LONGEST_MS }),
    };
    fc.assert(
      fc.property(tries, bounds.base, bounds.max, (drawn, baseMs, maxMs) => {
        const draws = [...drawn, 0.5];
        const rig = new Rig({ retry: { baseMs, maxMs, random: () => draws.shift() as number } });
        rig.subscribe();
        rig.last.frame(entryToken(1), 1);
        for (const [attempt, part] of drawn.entries()) {
          rig.last.fail(lostLink());
          const waited = rig.states.at(-1);
          const expected = part * Math.min(maxMs, baseMs * 2 ** attempt);
          expect(waited).toMatchObject({ state: 'lost', retryMs: expected });
          rig.clock.advance(maxMs);
          expect(rig.attempts.length).toBe(attempt + 2);
        }
        rig.last.frame(entryToken(2), 2);
        rig.last.fail(lostLink());
        expect(rig.states.at(-1)).toMatchObject({ retryMs: 0.5 * Math.min(maxMs, baseMs) });
      }),
    );
  });

  test('after so many tries in a row the error is passed on, and the token stays', () => {
    const store = new Map<string, string>();
    const rig = new Rig({ retry: { tries: 2 }, store });
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(7), 7);
    for (let n = 0; n < 3; n += 1) {
      expect(consumer.errors).toEqual([]);
      rig.last.refuse('unavailable');
      rig.clock.advance(LONGEST_MS);
    }
    expect(consumer.errors.map(feedReason)).toEqual(['unavailable']);
    expect([rig.attempts.length, [...store.values()]]).toEqual([3, [entryToken(7)]]);
  });

  test('without retries every error is passed on', () => {
    const rig = new Rig({ retry: false });
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(7), 7);
    rig.last.refuse('unavailable');
    expect(consumer.errors.length).toBe(1);
  });

  test('a first answer that is a 503 of a feed is tried again; one that is not is passed on', () => {
    const rig = new Rig();
    const feed = rig.subscribe();
    rig.last.refuse('unavailable');
    expect([feed.errors, rig.clock.waits.length]).toEqual([[], 1]);
    const other = rig.subscribe();
    rig.last.fail(procedureError(503));
    expect(other.errors.length).toBe(1);
  });

  test.each([401, 403, 404, 429, 500])('a %d is passed on, and the token stays', (status) => {
    const store = new Map<string, string>();
    const rig = new Rig({ store });
    const consumer = rig.subscribe();
    rig.last.frame(entryToken(7), 7);
    rig.last.fail(procedureError(status));
    expect(consumer.errors.length).toBe(1);
    rig.subscribe();
    expect(rig.last.token).toBe(entryToken(7));
  });

  test('an event stream that the browser would try again is taken over', () => {
    const rig = new Rig({ retry: { random: () => 0.5 } });
    const consumer = rig.subscribe();
    rig.last.started({ eventSource: {} });
    rig.last.frame(entryToken(7), 7);
    const [first] = rig.attempts;
    rig.last.connecting(lostLink());
    expect([first?.open, rig.clock.waits, consumer.states]).toEqual([false, [500], ['connecting']]);
    rig.clock.advance(500);
    expect(rig.last.token).toBe(entryToken(7));
  });

  test('an event stream whose first answer is a 503 of a feed is taken over', () => {
    const rig = new Rig({ retry: { random: () => 0.5 } });
    const consumer = rig.subscribe();
    rig.last.started({ eventSource: {} });
    rig.last.connecting(refusal('unavailable'));
    expect([rig.last.open, rig.clock.waits, rig.told]).toEqual([false, [500], ['lost']]);
    expect(consumer.states).toEqual(['connecting']);
  });

  test('a link that stood for a while before it was lost is no try, though no frame came', () => {
    const rig = new Rig({ retry: { tries: 3, random: () => 0.5 } });
    const consumer = rig.subscribe({ lastEventId: entryToken(7) });
    rig.last.frame(entryToken(8), 8);
    for (let cut = 0; cut < 5; cut += 1) {
      rig.last.started({ eventSource: {} });
      rig.clock.advance(60_000);
      rig.last.connecting(lostLink());
      expect(rig.clock.waits).toEqual([500]);
      rig.clock.advance(500);
    }
    // What answers with an error after as long a time is.
    for (const ms of [1_000, 2_000]) {
      rig.last.started({ eventSource: {} });
      rig.clock.advance(60_000);
      rig.last.connecting(refusal('unavailable'));
      rig.clock.advance(ms);
    }
    expect(consumer.errors).toEqual([]);
    rig.last.connecting(refusal('unavailable'));
    expect(consumer.errors.map(feedReason)).toEqual(['unavailable']);
  });

  test('values without ids, as those of a watch, end a row of tries', () => {
    const rig = new Rig({ retry: { random: () => 0.5 } });
    rig.subscribe();
    for (let deploy = 0; deploy < 3; deploy += 1) {
      rig.last.refuse('closing');
      expect(rig.clock.waits).toEqual([500]);
      rig.clock.advance(500);
      rig.last.send({ result: { type: 'data', data: { data: 'seen' } } });
    }
  });

  test('a socket that is lost is left to its own link', () => {
    const rig = new Rig();
    const consumer = rig.subscribe();
    rig.last.started();
    rig.last.frame(entryToken(7), 7);
    rig.last.connecting(lostLink());
    expect([rig.last.open, rig.clock.waits, consumer.states]).toEqual([true, [], ['connecting']]);
  });
});

test.each([{ baseMs: -1 }, { maxMs: Number.NaN }, { tries: -1 }])('%o is refused', (retry) => {
  expect(() => new Rig({ retry })).toThrow(RangeError);
});

test('a policy that is none is refused', () => {
  // What a JavaScript caller can do: the types refuse it.
  expect(() => new Rig({ onGap: 'skip' as 'error' })).toThrow(TypeError);
});
