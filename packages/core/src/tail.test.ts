import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { settled, turns } from '../test/support/feed-rig.ts';
import { OUTAGE } from '../test/support/scripted-log.ts';
import { DELAYS, TailRig, take } from '../test/support/tail-rig.ts';
import { BrokerError } from './errors.ts';

const rejections: unknown[] = [];
const note = (error: unknown): void => {
  rejections.push(error);
};
process.on('unhandledRejection', note);
afterAll(() => void process.off('unhandledRejection', note));
afterEach(async () => {
  await settled();
  expect(rejections.splice(0)).toEqual([]);
});

describe('a live read that breaks', () => {
  test('is started again once for all members, and what was appended meanwhile comes once', async () => {
    const rig = new TailRig();
    const members = [await rig.live(), await rig.live(), await rig.live()];
    await rig.append('a');
    for (const member of members) expect(await take(member, 1)).toEqual(['a']);
    rig.log.breakReads();
    await rig.clock.untilWait(10);
    const standings = () => members.map((member) => member.standing('live'));
    expect(standings()).toEqual(['outage', 'outage', 'outage']);
    await rig.append('b');
    await rig.append('c', 'd');
    rig.clock.advance(10);
    await rig.log.untilFollows(2);
    await rig.append('e');
    for (const member of members) expect(await take(member, 4)).toEqual(['b', 'c', 'd', 'e']);
    expect(standings()).toEqual(['live', 'live', 'live']);
    expect(rig.log.follows).toBe(2);
    for (const member of members) expect(member.take()).toBeUndefined();
  });

  test('wherever in its start it breaks, nothing is lost or repeated', async () => {
    type Point = (rig: TailRig, fail: () => void) => void;
    const points: Record<string, Point> = {
      'before the first page': (rig, fail) => {
        rig.log.beforePage = (call) => {
          if (call === 1) fail();
        };
      },
      'after the first page': (rig, fail) => {
        rig.log.afterPage = (call) => {
          if (call === 1) fail();
        };
      },
      'before the live read': (rig, fail) => {
        rig.log.beforeFollow = (call) => {
          if (call === 1) fail();
        };
      },
      'when it is live': (rig) => {
        rig.log.onLive = (call, live) => {
          if (call === 1) queueMicrotask(() => rig.log.breakReads());
          live();
        };
      },
      'before it says that it is live': (rig) => {
        rig.log.onLive = (call, live) => {
          if (call === 1) rig.log.breakReads();
          else live();
        };
      },
    };
    for (const [name, arrange] of Object.entries(points)) {
      for (let at = 0; at < 12; at += 1) {
        const rig = new TailRig();
        await rig.append('before');
        arrange(rig, () => {
          throw OUTAGE;
        });
        const subscriber = rig.subscriber();
        const reading = subscriber.positioned().then(() => {
          subscriber.startLive();
          return take(subscriber, 3);
        });
        await turns(at);
        const appended = rig.clock.waits.length === 0 ? 'early' : 'late';
        await rig.clock.untilWait(10);
        // Whatever is appended once it stands must come; what came before that may.
        rig.clock.advance(10);
        await rig.log.untilReads(1);
        await settled();
        await rig.append('a');
        await rig.append('b', 'c');
        expect(await reading, `${name}, ${appended}`).toEqual(['a', 'b', 'c']);
        expect(subscriber.take()).toBeUndefined();
        subscriber.close();
        await rig.log.untilReads(0);
      }
    }
  });

  test('at each point of a restart an append comes once', async () => {
    for (let at = 0; at < 30; at += 1) {
      const rig = new TailRig();
      const subscriber = await rig.live();
      await rig.append('a');
      expect(await take(subscriber, 1)).toEqual(['a']);
      const reading = take(subscriber, 3);
      rig.log.breakReads();
      await rig.clock.untilWait(10);
      rig.clock.advance(10);
      await turns(at);
      await rig.append('b');
      await rig.append('c', 'd');
      expect(await reading, `after ${at} turns`).toEqual(['b', 'c', 'd']);
      await settled();
      expect(subscriber.take()).toBeUndefined();
    }
  });

  test('is tried five times, then every member fails and the next subscriber starts clean', async () => {
    const rig = new TailRig();
    const members = [await rig.live(), await rig.live()];
    await rig.append('a');
    await settled();
    rig.log.beforeFollow = () => {
      throw OUTAGE;
    };
    rig.log.breakReads();
    for (const ms of DELAYS) {
      await rig.clock.untilWait(ms);
      rig.clock.advance(ms);
    }
    // What the ring still has is read first.
    for (const member of members) expect(await take(member, 1)).toEqual(['a']);
    for (const member of members) await expect(take(member, 1)).rejects.toBe(OUTAGE);
    expect(rig.log.follows).toBe(6);
    expect(rig.tails.size).toBe(0);
    expect(rig.clock.waits).toEqual([]);
    for (const member of members) member.close();

    rig.log.beforeFollow = () => {};
    const next = await rig.live();
    await rig.append('b');
    expect(await take(next, 1)).toEqual(['b']);
    expect(rig.meter.of('brokerfeed.tail.started')).toBe(2);
  });

  test('has all its tries again once it was live', async () => {
    const rig = new TailRig();
    const subscriber = await rig.live();
    for (let outage = 0; outage < 8; outage += 1) {
      await rig.log.untilReads(1);
      await settled();
      rig.log.breakReads();
      await rig.clock.untilWait(10);
      rig.clock.advance(10);
    }
    await rig.log.untilReads(1);
    await rig.append('a');
    expect(await take(subscriber, 1)).toEqual(['a']);
  });

  test('has no new tries for having begun without ever being live', async () => {
    const rig = new TailRig();
    rig.log.onLive = (call, live) => (call === 1 ? live() : rig.log.breakReads());
    const subscriber = await rig.live();
    await rig.log.untilReads(1);
    await settled();
    rig.log.breakReads();
    for (const ms of DELAYS) {
      await rig.clock.untilWait(ms);
      rig.clock.advance(ms);
    }
    await expect(take(subscriber, 1)).rejects.toBe(OUTAGE);
  });

  test.each(['CLOSED', 'DAMAGED', 'UNSUPPORTED', 'TOPIC_INVALID'] as const)(
    'is not tried again after %s',
    async (code) => {
      const rig = new TailRig();
      const subscriber = await rig.live();
      await settled();
      const error = new BrokerError(code, 'no use');
      rig.log.breakReads(error);
      await expect(take(subscriber, 1)).rejects.toBe(error);
      expect(rig.tails.size).toBe(0);
    },
  );

  test('an error that is no broker error fails members as one', async () => {
    const rig = new TailRig();
    const subscriber = await rig.live({ retryDelaysMs: [] });
    await settled();
    const cause = new TypeError('reading undefined');
    rig.log.breakReads(cause);
    await expect(take(subscriber, 1)).rejects.toMatchObject({ code: 'UNAVAILABLE', cause });
  });

  test('that ends without a reason is broken too, and does not spin', async () => {
    const rig = new TailRig();
    const subscriber = await rig.live();
    await settled();
    rig.log.endReads(undefined);
    await rig.clock.untilWait(10);
    await rig.append('a');
    rig.clock.advance(10);
    expect(await take(subscriber, 1)).toEqual(['a']);
    expect(rig.log.follows).toBe(2);
  });
});
