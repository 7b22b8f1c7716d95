import { describe, expect, test } from 'vitest';
import { FeedRig, settled, turns } from '../test/support/feed-rig.ts';
import type { FeedGap } from './index.ts';

const BAD = 'not a token at all';

describe('a snapshot', () => {
  test('is followed by what was appended while it was made, then by what is new', async () => {
    const gaps: FeedGap[] = [];
    const rig: FeedRig = new FeedRig({
      onGap: async ({ gap }) => {
        gaps.push(gap);
        await rig.append('meanwhile');
        await settled();
        return { state: 'all' };
      },
    });
    await rig.appendEach('a', 'b', 'c');
    const { take: first, reader } = await rig.open();
    await rig.append('d');
    const [held] = await first(1);
    reader.close();
    await rig.append('e');
    rig.trim(0);
    const { values } = await rig.open(held?.token);
    expect(await values(2)).toEqual([{ state: 'all' }, 'meanwhile']);
    await rig.append('later');
    expect(await values(1)).toEqual(['later']);
    expect(gaps).toEqual([{ reason: 'trimmed', status: 410, lastEventId: held?.token }]);
  });

  test('at every point of its making, an append comes after it', async () => {
    for (let at = 0; at < 40; at += 1) {
      const rig = new FeedRig({
        onGap: async () => {
          await turns(5);
          return ['s1', 's2'];
        },
      });
      const reading = rig.open(BAD).then(async ({ values }) => values(3));
      await turns(at);
      const isOpen = rig.meter.of('brokerfeed.feed.snapshots') > 0;
      await rig.append('a');
      await settled();
      if (!isOpen) await rig.append('b');
      const seen = await reading;
      // Before the live position was fixed, the snapshot has it; from then on it must follow.
      expect([['s1', 's2', 'a'], isOpen ? [] : ['s1', 's2', 'b']]).toContainEqual(seen);
    }
  });

  async function* series(): AsyncGenerator<string> {
    yield 's1';
    await null;
    yield 's2';
  }

  test.each<[string, () => unknown, readonly unknown[]]>([
    ['one value', () => ({ all: 1 }), [{ all: 1 }]],
    ['a promise of one', async () => 7, [7]],
    ['a text, which is one value', () => 'text', ['text']],
    ['null, which is a value', () => null, [null]],
    ['an array', () => ['s1', 's2'], ['s1', 's2']],
    ['an empty array', () => [], []],
    ['a set', () => new Set([1, 2, 3]), [1, 2, 3]],
    ['a generator', () => series(), ['s1', 's2']],
    ['a promise of a generator', async () => series(), ['s1', 's2']],
    ['nothing', () => undefined, []],
    ['an array with holes in its values', () => [undefined, null, 1], [undefined, null, 1]],
  ])('may be %s; the feed is live after it', async (_, onGap, expected) => {
    const rig = new FeedRig({ onGap });
    const { values } = await rig.open(BAD);
    const reading = values(expected.length);
    expect(await reading).toEqual(expected);
    const next = values(1);
    await settled();
    await rig.append('live');
    expect(await next).toEqual(['live']);
  });

  test('may be unfinished when its client drops: then it comes again, whole', async () => {
    const rig = new FeedRig({ onGap: () => ['s1', 's2', 's3'] });
    const first = await rig.open(BAD);
    const frames = await first.take(2);
    first.reader.close();
    await rig.append('a');
    for (const frame of frames) {
      const again = await rig.open(frame.token);
      expect((await again.values(3)).slice(0, 3)).toEqual(['s1', 's2', 's3']);
      again.reader.close();
    }
    const strict = rig.another({});
    await expect(rig.open(frames[0]?.token, {}, strict)).rejects.toMatchObject({
      status: 410,
      reason: 'snapshot',
    });
    expect(new Set(frames.map((frame) => frame.token)).size).toBe(2);
  });

  test('that is made again has other tokens, as far as a client that moves may have had the first', async () => {
    const rig = new FeedRig({ onGap: () => ['s1', 's2', 's3'] });
    const first = await rig.open(BAD);
    const frames = await first.take(3);
    for (const { token } of frames.slice(0, 2)) {
      const again = await rig.open(token);
      const tokens = [...frames, ...(await again.take(3))].map((frame) => frame.token);
      expect(new Set(tokens).size).toBe(6);
      again.reader.close();
    }
  });

  test('that was seen whole does not come again, and nothing since is missed', async () => {
    const rig: FeedRig = new FeedRig({
      onGap: async () => {
        await rig.append('meanwhile');
        return ['s1', 's2', 's3'];
      },
    });
    const first = await rig.open(BAD);
    const frames = await first.take(3);
    first.reader.close();
    await rig.append('a');
    const again = await rig.open(frames[2]?.token);
    expect(await again.values(2)).toEqual(['meanwhile', 'a']);
    expect(rig.meter.of('brokerfeed.feed.snapshots')).toBe(1);
  });

  test.each<[string, () => unknown]>([
    [
      'onGap',
      () => {
        throw new Error('no database');
      },
    ],
    [
      'the promise of it',
      async () => {
        throw new Error('no database');
      },
    ],
    [
      'its series',
      () =>
        (async function* () {
          yield 1;
          throw new Error('no database');
        })(),
    ],
  ])('that fails in %s ends the feed and leaves nothing', async (_, onGap) => {
    const rig = new FeedRig({ onGap });
    const { reader } = await rig.open(BAD);
    await expect(reader.next()).rejects.toThrow('no database');
    expect(await reader.next()).toBeUndefined();
    expect(rig.tails).toBe(0);
  });
});
