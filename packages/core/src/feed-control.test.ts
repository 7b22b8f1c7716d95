import { describe, expect, test } from 'vitest';
import { FeedRig, settled } from '../test/support/feed-rig.ts';

const IDLE_MS = 1_000;
const CONTROL = { idleMs: IDLE_MS };

function control(feed: string): { feed: string } {
  return { feed };
}

function controls(...feeds: string[]): { feed: string }[] {
  return feeds.map(control);
}

describe('the first frame', () => {
  test('lets a client that drops before any entry miss nothing', async () => {
    const rig = new FeedRig({ control: true });
    const first = await rig.open();
    await rig.append('meanwhile');
    const [attached] = await first.take(1);
    expect(attached?.value).toEqual(control('attached'));
    first.reader.close();
    await rig.append('later');
    const { values } = await rig.open(attached?.token);
    expect(await values(5)).toEqual([
      ...controls('attached', 'catching-up'),
      'meanwhile',
      'later',
      control('live'),
    ]);
  });

  test('is not sent unless it was asked for', async () => {
    for (const option of [undefined, false]) {
      const rig = new FeedRig(option === undefined ? {} : { control: option });
      const { values } = await rig.open();
      await rig.append('a');
      expect(await values(1)).toEqual(['a']);
      expect(rig.clock.waits).toEqual([]);
    }
  });

  test('of a gap says that the snapshot is on its way, and brings it again to one who drops there', async () => {
    const rig = new FeedRig({ control: true, onGap: ({ gap }) => gap.reason });
    const { take, reader } = await rig.open('bad');
    const [first] = await take(1);
    expect(first?.value).toEqual(control('catching-up'));
    reader.close();
    const { values } = await rig.open(first?.token);
    expect(await values(3)).toEqual([control('catching-up'), 'snapshot', control('live')]);
  });

  test('after a gap without a snapshot replaces the token', async () => {
    const rig = new FeedRig({ control: true, onGap: () => undefined });
    const { take, reader } = await rig.open('bad');
    const [begun, frame, end] = await take(3);
    expect([begun, frame, end].map((each) => each?.value)).toEqual(
      controls('catching-up', 'position', 'live'),
    );
    reader.close();
    await rig.append('a');
    const { values } = await rig.open(frame?.token);
    expect(await values(3)).toEqual([...controls('attached', 'catching-up'), 'a']);
  });
});

describe('a fresher token', () => {
  test('comes when entries were skipped for a while', async () => {
    const rig = new FeedRig({ control: CONTROL, filter: (value) => value !== 'skip' });
    const { take, reader } = await rig.open();
    await take(2);
    const next = take(1);
    await rig.appendEach('skip', 'skip');
    await settled();
    rig.clock.advance(IDLE_MS);
    const [fresh] = await next;
    expect(fresh?.value).toEqual(control('position'));
    reader.close();
    // It stands after what was skipped: that may go.
    rig.trim(0);
    await rig.append('a');
    const again = await rig.open(fresh?.token);
    expect(await again.values(3)).toEqual([...controls('attached', 'catching-up'), 'a']);
  });

  test('does not come where nothing moved on', async () => {
    const rig = new FeedRig({ control: CONTROL });
    const { take } = await rig.open();
    await take(2);
    await rig.append('a');
    await take(1);
    const signed = rig.meter.of('brokerfeed.feed.signatures');
    const next = take(1);
    await settled();
    rig.clock.advance(10 * IDLE_MS);
    await settled();
    await rig.append('b');
    expect((await next)[0]?.value).toBe('b');
    expect(rig.meter.of('brokerfeed.feed.signatures')).toBe(signed + 1);
  });

  test('comes once, however long nobody reads', async () => {
    const rig = new FeedRig({ control: CONTROL, filter: (value) => value !== 'skip' });
    const { take, values } = await rig.open();
    await take(2);
    const next = take(1);
    await rig.appendEach('skip', 'a', 'skip');
    await next;
    rig.clock.advance(100 * IDLE_MS);
    await rig.append('b');
    const seen = await values(1);
    expect(seen).toEqual(['b']);
  });

  test('inside a commit stands before it', async () => {
    const rig = new FeedRig({ control: CONTROL, filter: (value) => value !== 'skip' });
    const { take, reader } = await rig.open();
    await take(2);
    const next = take(1);
    await rig.append('a', 'skip', 'b');
    await next;
    reader.close();
    const { values } = await rig.open((await next)[0]?.token);
    expect(await values(3)).toEqual([...controls('attached', 'catching-up'), 'a']);
  });
});

describe('an outage', () => {
  test('is told, and its end, in the order of things', async () => {
    const rig = new FeedRig({ control: true });
    const { values } = await rig.open();
    await values(2);
    await rig.append('a');
    await values(1);
    const next = values(1);
    await settled();
    rig.log.breakReads();
    expect(await next).toEqual([control('outage')]);
    await rig.append('b');
    await rig.clock.untilWait(250);
    rig.clock.advance(250);
    expect(await values(3)).toEqual([control('catching-up'), 'b', control('live')]);
  });

  test('is told once, however often the read is tried', async () => {
    const rig = new FeedRig({ control: true });
    const { values } = await rig.open();
    await values(2);
    await settled();
    let failing = true;
    rig.log.beforeFollow = () => {
      if (failing) throw new Error('away');
    };
    rig.log.breakReads();
    const news = values(2);
    for (const ms of [250, 1000, 4000]) {
      await rig.clock.untilWait(ms);
      rig.clock.advance(ms);
    }
    await rig.clock.untilWait(10_000);
    failing = false;
    rig.clock.advance(10_000);
    await rig.log.untilReads(1);
    expect(await news).toEqual(controls('outage', 'live'));
    await rig.append('a');
    expect(await values(1)).toEqual(['a']);
  });

  test('that is over before the client reads of it is not told', async () => {
    const rig = new FeedRig({ control: true });
    const { values } = await rig.open();
    await values(2);
    for (let times = 0; times < 3; times += 1) {
      await rig.log.untilReads(1);
      await settled();
      rig.log.breakReads();
      await rig.clock.untilWait(250);
      rig.clock.advance(250);
    }
    await rig.log.untilReads(1);
    await settled();
    await rig.append('a');
    expect(await values(1)).toEqual(['a']);
  });

  test('in which a client arrives is told to it', async () => {
    const rig = new FeedRig({ control: true });
    const first = await rig.open();
    await first.take(1);
    await settled();
    rig.log.breakReads();
    await rig.clock.untilWait(250);
    const second = await rig.open();
    const [one, two] = await second.values(2);
    expect([one, two]).toEqual(controls('attached', 'outage'));
    rig.clock.advance(250);
    expect(await second.values(1)).toEqual([control('live')]);
  });

  test('between the values of a snapshot does not cut it short for a client that drops there', async () => {
    const rig: FeedRig = new FeedRig({
      control: true,
      onGap: async function* () {
        yield 's1';
        yield 's2';
        rig.log.breakReads();
        await settled();
        yield 's3';
        yield 's4';
      },
    });
    const { take, reader } = await rig.open('bad');
    const frames = await take(4);
    const outage =
      frames.find((frame) => (frame.value as { feed?: string }).feed === 'outage') ??
      (await take(1))[0];
    expect(outage?.value).toEqual(control('outage'));
    reader.close();
    const again = await rig.open(outage?.token);
    expect(await again.values(2)).toEqual([control('catching-up'), 's1']);
    again.reader.close();
  });
});
