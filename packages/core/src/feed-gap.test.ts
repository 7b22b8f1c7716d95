import { describe, expect, test } from 'vitest';
import { FeedRig, settled } from '../test/support/feed-rig.ts';
import { OUTAGE } from '../test/support/scripted-log.ts';

const BAD = 'not a token at all';

/** A promise, and what settles it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

describe('a gap in a running feed', () => {
  test('of a reader that was overtaken is told, then the next live entry comes', async () => {
    const rig = new FeedRig({
      highWaterMark: 1,
      broker: { retention: { maxEntries: 2 } },
      onGap: ({ gap }) => ({ snapshot: gap.reason }),
    });
    const { values } = await rig.open();
    await rig.append(0);
    expect(await values(1)).toEqual([0]);
    await rig.appendEach(1, 2, 3, 4, 5);
    await settled();
    expect(await values(1)).toEqual([{ snapshot: 'trimmed' }]);
    await rig.append(6);
    expect(await values(1)).toEqual([6]);
  });

  test('without onGap ends it with 410, after all that was still to be had', async () => {
    const rig = new FeedRig();
    const { take, reader } = await rig.open();
    await rig.appendEach('a', 'b');
    await settled();
    rig.drop();
    await settled();
    expect((await take(2)).map((frame) => frame.value)).toEqual(['a', 'b']);
    await expect(reader.next()).rejects.toMatchObject({ status: 410, reason: 'epoch' });
    expect(await reader.next()).toBeUndefined();
    expect(rig.tails).toBe(0);
  });

  test('names the token of the last entry taken', async () => {
    const held: unknown[] = [];
    const rig = new FeedRig({ onGap: ({ gap }) => void held.push(gap.lastEventId) });
    const { take, values } = await rig.open();
    await rig.append('a');
    await take(1);
    rig.drop();
    const next = values(1);
    await settled();
    await rig.append('b');
    expect(await next).toEqual(['b']);
    expect(held).toHaveLength(1);
    await expect(rig.open(held[0], {}, rig.another({}))).rejects.toMatchObject({ reason: 'epoch' });
  });

  test('of a rolled-back log is 410 too, never 400', async () => {
    const rig = new FeedRig();
    const { reader } = await rig.open();
    await settled();
    const next = reader.next();
    rig.log.endReads('ahead');
    await expect(next).rejects.toMatchObject({ status: 410, reason: 'forked' });
  });

  test('is not made of an outage', async () => {
    const rig = new FeedRig({ retryDelaysMs: [], onGap: () => 'never' });
    const { reader } = await rig.open();
    await settled();
    const next = reader.next();
    rig.log.breakReads(OUTAGE);
    await expect(next).rejects.toMatchObject({ status: 503, reason: 'unavailable' });
    expect(rig.meter.of('brokerfeed.feed.snapshots')).toBe(0);
  });

  test('after gap, with no entry between, ends in 503', async () => {
    const rig: FeedRig = new FeedRig({
      highWaterMark: 1,
      onGap: async () => {
        // It takes longer than the log retains.
        await rig.appendEach(1, 2, 3);
        await settled();
        rig.trim(1);
        return undefined;
      },
    });
    const { reader } = await rig.open(BAD);
    await expect(reader.next()).rejects.toMatchObject({ status: 503, reason: 'unavailable' });
    expect(rig.meter.of('brokerfeed.feed.snapshots')).toBeLessThanOrEqual(6);
    expect(rig.tails).toBe(0);
  });

  test('after gap, each followed by the end of the log, goes on for ever', async () => {
    const rig = new FeedRig({ onGap: ({ gap }) => gap.reason });
    const { values } = await rig.open();
    for (let round = 0; round < 12; round += 1) {
      const next = values(1);
      await settled();
      rig.drop();
      expect(await next).toEqual(['epoch']);
    }
  });

  test('after gap, each followed by an entry, goes on for ever', async () => {
    const rig = new FeedRig({ onGap: () => undefined });
    const { values } = await rig.open();
    for (let round = 0; round < 12; round += 1) {
      rig.drop();
      const next = values(1);
      await settled();
      await rig.append(round);
      expect(await next).toEqual([round]);
    }
    expect(rig.meter.of('brokerfeed.feed.snapshots')).toBe(12);
  });
});

describe('a shared snapshot', () => {
  interface Args {
    readonly tenant: string;
  }

  test('is made once for those who wait for the same', async () => {
    const { opened, open } = gate();
    const made: string[] = [];
    const rig: FeedRig<Args> = new FeedRig<Args>({
      shareGap: ({ tenant }) => tenant,
      onGap: async ({ tenant }) => {
        made.push(tenant);
        await opened;
        return [`${tenant} 1`, `${tenant} 2`];
      },
    });
    const herd = await Promise.all(
      ['a', 'b', 'a', 'b', 'a'].map(async (tenant) => ({
        tenant,
        subscription: await rig.open(BAD, { tenant }),
      })),
    );
    const reading = herd.map(({ subscription }) => subscription.values(3));
    await settled();
    await rig.append('meanwhile');
    const late = await rig.open(BAD, { tenant: 'a' });
    const lateReading = late.values(3);
    await settled();
    open();
    for (const [index, values] of (await Promise.all(reading)).entries()) {
      const tenant = herd[index]?.tenant;
      expect(values).toEqual([`${tenant} 1`, `${tenant} 2`, 'meanwhile']);
    }
    // Who joins later goes on from where the snapshot began, not from where it came.
    expect(await lateReading).toEqual(['a 1', 'a 2', 'meanwhile']);
    expect(made.sort()).toEqual(['a', 'b']);
    // Once it is there, the next gap makes its own.
    await (await rig.open(BAD, { tenant: 'a' })).values(2);
    expect(made).toHaveLength(3);
  });

  test('that fails fails all who wait, and the next tries again', async () => {
    let fail = true;
    const rig = new FeedRig<Args>({
      shareGap: ({ tenant }) => tenant,
      onGap: async () => {
        await settled();
        if (fail) throw new Error('no database');
        return 'good';
      },
    });
    const both = await Promise.all([1, 2].map(() => rig.open(BAD, { tenant: 'a' })));
    const ends = await Promise.allSettled(both.map(({ reader }) => reader.next()));
    expect(ends.map((end) => end.status)).toEqual(['rejected', 'rejected']);
    expect(rig.meter.of('brokerfeed.feed.snapshots')).toBe(1);
    fail = false;
    expect(await (await rig.open(BAD, { tenant: 'a' })).values(1)).toEqual(['good']);
  });

  test('goes on for the others when who began it leaves', async () => {
    const { opened, open } = gate();
    const rig = new FeedRig<Args>({
      shareGap: ({ tenant }) => tenant,
      onGap: async () => {
        await opened;
        return 'good';
      },
    });
    const [one, two] = await Promise.all([1, 2].map(() => rig.open(BAD, { tenant: 'a' })));
    const first = one?.reader.next();
    const second = two?.values(1);
    await settled();
    one?.abort.abort();
    expect(await first).toBeUndefined();
    open();
    expect(await second).toEqual(['good']);
  });

  test('is not shared across a deleted topic', async () => {
    const { opened, open } = gate();
    let made = 0;
    const rig = new FeedRig<Args>({
      shareGap: ({ tenant }) => tenant,
      onGap: async () => {
        made += 1;
        await opened;
        return `state ${made}`;
      },
    });
    const one = await rig.open(BAD, { tenant: 'a' });
    void one.reader.next();
    await settled();
    rig.drop();
    await settled();
    const two = await rig.open(BAD, { tenant: 'a' });
    const second = two.values(1);
    await settled();
    open();
    await second;
    expect(made).toBeGreaterThanOrEqual(2);
  });
});
