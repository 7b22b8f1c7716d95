import { describe, expect, test } from 'vitest';
import { settled, TOPIC, turns } from '../test/support/feed-rig.ts';
import { OUTAGE } from '../test/support/scripted-log.ts';
import { TailRig, take } from '../test/support/tail-rig.ts';

describe('a loss that the live read finds', () => {
  test('comes in its place, and what follows it comes too', async () => {
    const rig = new TailRig();
    const subscriber = await rig.live();
    await rig.append('a');
    await settled();
    rig.store.drop(TOPIC);
    await settled();
    await rig.append('b');
    expect(await take(subscriber, 2)).toEqual(['a', 'gap epoch']);
    subscriber.startLive();
    await rig.append('c');
    expect(await take(subscriber, 1)).toEqual(['c']);
  });

  test('past the end of the log is a rollback', async () => {
    const rig = new TailRig();
    const subscriber = await rig.live();
    await settled();
    rig.log.endReads('ahead');
    expect(await take(subscriber, 1)).toEqual(['gap forked']);
  });

  test('is not forgotten when the log is away right then', async () => {
    const rig = new TailRig();
    const subscriber = await rig.live();
    await settled();
    rig.log.beforePage = () => {
      throw OUTAGE;
    };
    rig.log.endReads('trimmed');
    await rig.clock.untilWait(10);
    rig.log.beforePage = () => {};
    rig.clock.advance(10);
    expect(await take(subscriber, 1)).toEqual(['gap trimmed']);
  });
});

describe('the end of a tail', () => {
  test('comes with its last member, at once without linger', async () => {
    const rig = new TailRig();
    const [one, two] = [await rig.live(), await rig.live()];
    await rig.log.untilReads(1);
    one.close();
    one.close();
    expect(rig.tails.size).toBe(1);
    two.close();
    expect(rig.tails.size).toBe(0);
    await rig.log.untilReads(0);
  });

  test('waits for the linger, which a new member ends', async () => {
    const rig = new TailRig();
    (await rig.live({ lingerMs: 1000 })).close();
    rig.clock.advance(999);
    expect(rig.log.reads).toBe(1);
    const subscriber = await rig.live({ lingerMs: 0 });
    rig.clock.advance(5000);
    await rig.append('a');
    expect(await take(subscriber, 1)).toEqual(['a']);
    expect(rig.log.follows).toBe(1);
    subscriber.close();
    // The longest linger asked for holds.
    rig.clock.advance(999);
    expect(rig.tails.size).toBe(1);
    rig.clock.advance(1);
    expect(rig.tails.size).toBe(0);
    await rig.log.untilReads(0);
    expect(rig.clock.waits).toEqual([]);
  });

  test('cancels a restart under way', async () => {
    const rig = new TailRig();
    const subscriber = await rig.live();
    await settled();
    rig.log.breakReads();
    await rig.clock.untilWait(10);
    subscriber.close();
    await settled();
    expect(rig.clock.waits).toEqual([]);
    expect(rig.log.follows).toBe(1);
    expect(rig.tails.size).toBe(0);
  });

  test('at any point of the start leaves nothing behind', async () => {
    for (let at = 0; at < 20; at += 1) {
      const rig = new TailRig();
      const subscriber = rig.subscriber();
      const positioned = subscriber.positioned().catch((error) => error);
      await turns(at);
      subscriber.close();
      await positioned;
      await rig.log.untilReads(0);
      expect(rig.tails.size).toBe(0);
      expect(rig.clock.waits).toEqual([]);
    }
  });
});
