import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { soaked } from '../../../test/support/soak.ts';
import { FeedRig, settled } from '../test/support/feed-rig.ts';
import { OUTAGE } from '../test/support/scripted-log.ts';
import { StandingWorld, type Step } from '../test/support/standing-world.ts';
import { deferred } from './deferred.ts';

const RETRY_MS = 250;

function controls(...feeds: string[]): { feed: string }[] {
  return feeds.map((feed) => ({ feed }));
}

describe('a subscription that starts', () => {
  test('at the tip is live at once', async () => {
    const rig = new FeedRig({ control: true });
    await rig.append('before');
    const { values } = await rig.open();
    expect(await values(2)).toEqual(controls('attached', 'live'));
    await rig.append('a');
    expect(await values(1)).toEqual(['a']);
  });

  test.each([1, 100])(
    'behind is catching up until it has what there was, with a ring of %i',
    async (highWaterMark) => {
      const rig = new FeedRig({ control: true, highWaterMark });
      const { take, reader } = await rig.open();
      const [attached] = await take(1);
      await rig.append('a', 'b');
      await rig.append('c');
      reader.close();
      const { values } = await rig.open(attached?.token);
      expect(await values(6)).toEqual([
        ...controls('attached', 'catching-up'),
        'a',
        'b',
        'c',
        ...controls('live'),
      ]);
    },
  );

  test.each([undefined, 'bad'])(
    'is not live before the live read stands, token: %s',
    async (token) => {
      const rig = new FeedRig({ control: true, onGap: () => 'state' });
      const stand = deferred<void>();
      rig.log.beforeFollow = () => stand.promise;
      const { values, take } = await rig.open(token);
      const first =
        token === undefined ? controls('attached') : [...controls('catching-up'), 'state'];
      expect(await values(first.length)).toEqual(first);
      let told = false;
      const next = take(1).then((frames) => {
        told = true;
        return frames.map(({ value }) => value);
      });
      await settled();
      expect(told).toBe(false);
      stand.resolve();
      expect(await next).toEqual(controls('live'));
      await rig.append('a');
      expect(await values(1)).toEqual(['a']);
    },
  );

  test('at the oldest entry is catching up, unless there is none', async () => {
    const rig = new FeedRig({ control: true, from: 'earliest' });
    const early = await rig.open();
    expect(await early.values(2)).toEqual(controls('attached', 'live'));
    await rig.append('a');
    const late = await rig.open();
    expect(await late.values(4)).toEqual([
      ...controls('attached', 'catching-up'),
      'a',
      ...controls('live'),
    ]);
  });

  test('with a snapshot is catching up until it has that, and what was appended meanwhile', async () => {
    const rig: FeedRig = new FeedRig({
      control: true,
      onGap: async () => {
        await rig.append('a');
        return ['s1', 's2'];
      },
    });
    const { values } = await rig.open('bad');
    expect(await values(5)).toEqual([
      ...controls('catching-up'),
      's1',
      's2',
      'a',
      ...controls('live'),
    ]);
  });

  test('has other tokens for control frames than the one before, and the same for entries', async () => {
    const rig = new FeedRig({ control: true });
    const first = await rig.open();
    const before = await first.take(2);
    const second = await rig.open(before[1]?.token);
    const stands = await second.take(2);
    await rig.append('a');
    const after = [...(await first.take(1)), ...stands, ...(await second.take(1))];
    expect(after.map(({ value }) => value)).toEqual(['a', ...controls('attached', 'live'), 'a']);
    const tokens = [...before, ...after].map(({ token }) => token);
    expect([tokens[2], new Set(tokens).size]).toEqual([tokens[5], 5]);
  });

  test('behind is live where all that it missed is filtered out', async () => {
    const rig = new FeedRig({ control: true, filter: (value) => value !== 'skip' });
    const { take, reader } = await rig.open();
    const [attached] = await take(1);
    reader.close();
    await rig.appendEach('skip', 'skip');
    const { values } = await rig.open(attached?.token);
    expect(await values(3)).toEqual(controls('attached', 'catching-up', 'live'));
  });
});

describe('a subscription that is live', () => {
  test('stays so however much comes, as long as the ring has it', async () => {
    const rig = new FeedRig({ control: true, highWaterMark: 10 });
    const { values } = await rig.open();
    await values(2);
    await rig.appendEach('a', 'b', 'c');
    expect(await values(3)).toEqual(['a', 'b', 'c']);
    await rig.append('d');
    expect(await values(1)).toEqual(['d']);
  });

  test('is catching up when it falls behind the ring', async () => {
    const rig = new FeedRig({ control: true, highWaterMark: 2 });
    const { values } = await rig.open();
    await values(2);
    await rig.appendEach('a', 'b', 'c', 'd');
    await settled();
    expect(await values(6)).toEqual([
      ...controls('catching-up'),
      'a',
      'b',
      'c',
      'd',
      ...controls('live'),
    ]);
  });

  test('is catching up when the log loses entries, and live after the snapshot', async () => {
    const rig = new FeedRig({ control: true, onGap: () => 'state' });
    const { values } = await rig.open();
    await values(2);
    rig.drop();
    await rig.append('in the snapshot');
    expect(await values(3)).toEqual([...controls('catching-up'), 'state', ...controls('live')]);
  });

  test('is not told so again by a feed that an outage ends', async () => {
    const rig = new FeedRig({ control: true, retryDelaysMs: [RETRY_MS] });
    const { values } = await rig.open();
    await values(2);
    await settled();
    rig.log.beforeFollow = () => {
      throw OUTAGE;
    };
    rig.log.breakReads();
    expect(await values(1)).toEqual(controls('outage'));
    rig.clock.advance(RETRY_MS);
    await expect(values(1)).rejects.toMatchObject({ reason: 'unavailable' });
  });
});

describe('the end of an outage', () => {
  test('is told as live once what was appended in it has come, also to a client that arrives in it', async () => {
    const rig = new FeedRig({ control: true, retryDelaysMs: [RETRY_MS] });
    const first = await rig.open();
    await first.values(2);
    await settled();
    rig.log.breakReads();
    await rig.clock.untilWait(RETRY_MS);
    await rig.appendEach('a', 'b');
    const second = await rig.open();
    expect(await first.values(1)).toEqual(controls('outage'));
    expect(await second.values(2)).toEqual(controls('attached', 'outage'));
    const held: (() => void)[] = [];
    rig.log.onCommits = (pass) => held.push(pass);
    rig.clock.advance(RETRY_MS);
    const rest = [first, second].map(({ values }) => values(4));
    await rig.log.untilReads(1);
    await settled();
    for (const pass of held) pass();
    const told = [...controls('catching-up'), 'a', 'b', ...controls('live')];
    expect(await Promise.all(rest)).toEqual([told, told]);
  });

  test('is told where what was owed went with the log', async () => {
    const rig = new FeedRig({ control: true, retryDelaysMs: [RETRY_MS], onGap: () => 'state' });
    const { values } = await rig.open();
    await values(2);
    await settled();
    rig.log.breakReads();
    await rig.clock.untilWait(RETRY_MS);
    await rig.append('a');
    rig.log.onCommits = () => {};
    rig.clock.advance(RETRY_MS);
    await rig.log.untilReads(1);
    await settled();
    expect(await values(1)).toEqual(controls('catching-up'));
    rig.drop();
    expect(await values(2)).toEqual(['state', ...controls('live')]);
  });

  test('costs feeds that do not tell it no read of the log', async () => {
    const rig = new FeedRig({ retryDelaysMs: [RETRY_MS] });
    await rig.open();
    await settled();
    const { pages } = rig.log;
    rig.log.breakReads();
    await rig.clock.untilWait(RETRY_MS);
    rig.clock.advance(RETRY_MS);
    await rig.log.untilFollows(2);
    expect(rig.log.pages).toBe(pages);
  });
});

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 6,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        entries: fc.integer({ min: 1, max: 3 }),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('connect' as const),
        from: fc.constantFrom('latest' as const, 'earliest' as const),
        pushed: fc.boolean(),
        eager: fc.boolean(),
        token: fc.oneof(fc.constant('none' as const), fc.nat(8)),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        do: fc.constant('read' as const),
        frames: fc.integer({ min: 1, max: 5 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('trim' as const), keep: fc.nat(2) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('break' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('mend' as const) }) },
  ),
  { minLength: 5, maxLength: 30, size: 'max' },
);

const setup = fc.record({
  highWaterMark: fc.constantFrom(1, 3, 100),
  slow: fc.boolean(),
  snapshot: fc.boolean(),
});

test('whatever happens, how a subscription stands is told once for each change, and live only where nothing is owed', async () => {
  await fc.assert(
    fc.asyncProperty(setup, steps, (options, doing) => new StandingWorld(options).run(doing)),
    { numRuns: soaked(80) },
  );
});
