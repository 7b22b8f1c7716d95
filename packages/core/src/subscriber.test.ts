import { describe, expect, test } from 'vitest';
import { settled, turns } from '../test/support/feed-rig.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import { ScriptedLog } from '../test/support/scripted-log.ts';
import { ready } from '../test/support/tail-rig.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';
import type { Position } from './position.ts';
import { Gap, Subscriber } from './subscriber.ts';
import { Tails } from './tails.ts';

const TOPIC = 'orders';

class Rig {
  readonly store = memoryStore();
  readonly clock = new ManualClock();
  readonly log = new ScriptedLog(memoryBroker({ store: this.store }).log);
  readonly #tails = new Tails(this.log);
  readonly #options;
  #count = 0;

  constructor(highWaterMark: number) {
    this.#options = { highWaterMark, lingerMs: 0, clock: this.clock, retryDelaysMs: [0] };
  }

  async subscriber(): Promise<Subscriber> {
    const tail = this.#tails.tail(TOPIC, this.#options);
    const pages = this.#tails.pages(this.#options);
    const subscriber = new Subscriber(tail, pages, this.#options);
    await subscriber.positioned();
    return subscriber;
  }

  async live(): Promise<Subscriber> {
    const subscriber = await this.subscriber();
    subscriber.startLive();
    return subscriber;
  }

  /** Appends commits of so many entries each: numbers that go on. */
  async append(...sizes: number[]): Promise<Position> {
    let position: Position | undefined;
    for (const size of sizes) {
      const values = Array.from({ length: size }, () => String(this.#count++));
      position = await this.log.append(TOPIC, values);
    }
    return position as Position;
  }

  get appended(): number {
    return this.#count;
  }
}

async function take(subscriber: Subscriber, count: number): Promise<unknown[]> {
  const taken: unknown[] = [];
  while (taken.length < count) {
    const next = subscriber.take();
    if (next === undefined) await ready(subscriber);
    else taken.push(next instanceof Gap ? `gap ${next.loss}` : Number(next.value));
  }
  return taken;
}

async function takeRuns(subscriber: Subscriber, count: number): Promise<unknown[]> {
  const taken: unknown[] = [];
  while (taken.length < count) {
    const next = subscriber.takeRun();
    if (next === undefined) await ready(subscriber);
    else if (next instanceof Gap) taken.push(`gap ${next.loss}`);
    else taken.push(...next.slots.map((slot) => Number(slot.value)));
  }
  return taken;
}

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, n) => from + n);
}

describe.each([
  ['entry by entry', take],
  ['in runs', takeRuns],
])('the hand-over, read %s', (_, read) => {
  test.each([1, 2, 5, 1024])(
    'an append at any point of a resume comes once, with a ring of %i',
    async (highWaterMark) => {
      for (let at = 0; at < 40; at += 1) {
        const rig = new Rig(highWaterMark);
        const start = (await rig.log.bounds(TOPIC)).first;
        await rig.append(1, 2, 1);
        const subscriber = await rig.subscriber();
        const reading = subscriber.resume(start).then((loss) => {
          expect(loss).toBeUndefined();
          return read(subscriber, 11);
        });
        await turns(at);
        await rig.append(2, 3);
        await turns(at % 7);
        await rig.append(1, 1);
        expect(await reading, `after ${at} turns`).toEqual(numbers(0, 11));
        await settled();
        expect(subscriber.take()).toBeUndefined();
      }
    },
  );

  test('appends between every page and its arrival come once', async () => {
    const rig = new Rig(2);
    const start = (await rig.log.bounds(TOPIC)).first;
    await rig.append(1, 1, 1);
    let left = 6;
    const grow = async (): Promise<void> => {
      if (left === 0) return;
      left -= 1;
      await rig.append(2, 1);
    };
    const subscriber = await rig.subscriber();
    rig.log.beforePage = grow;
    rig.log.afterPage = grow;
    expect(await subscriber.resume(start)).toBeUndefined();
    expect(await read(subscriber, 3 + 6 * 3)).toEqual(numbers(0, 21));
    expect(rig.appended).toBe(21);
  });

  test('a reader that falls behind the ring again and again misses nothing', async () => {
    const rig = new Rig(5);
    const subscriber = await rig.live();
    let seen = 0;
    for (let round = 0; round < 6; round += 1) {
      await rig.append(...Array<number>(20).fill(1));
      await settled();
      // Some, so that the next round finds it in the middle of a page.
      const count = round % 2 === 0 ? 7 : 33;
      const got = await take(subscriber, count);
      expect(got).toEqual(numbers(seen, seen + count));
      seen += count;
    }
    expect(await read(subscriber, 120 - seen)).toEqual(numbers(seen, 120));
  });

  test('more pages than one are read to their end', async () => {
    const rig = new Rig(4);
    const start = (await rig.log.bounds(TOPIC)).first;
    await rig.append(...Array<number>(700).fill(1));
    const subscriber = await rig.subscriber();
    await subscriber.resume(start);
    expect(await read(subscriber, 700)).toEqual(numbers(0, 700));
    await rig.append(1);
    expect(await read(subscriber, 1)).toEqual([700]);
  });

  test('a trim under pages is told after those that were read, in its place', async () => {
    const rig = new Rig(1);
    const start = (await rig.log.bounds(TOPIC)).first;
    await rig.append(...Array<number>(2_100).fill(1));
    const subscriber = await rig.subscriber();
    await subscriber.resume(start);
    // The second page is read ahead of the reader.
    await new Promise(setImmediate);
    rig.store.trim(TOPIC, 10);
    expect(await read(subscriber, 2_049)).toEqual([...numbers(0, 2_048), 'gap trimmed']);
    expect(subscriber.cursor.ordinal).toBe(2_048);
  });

  test('a delete while the log is asked is told', async () => {
    const rig = new Rig(1);
    const subscriber = await rig.live();
    await rig.append(1, 1, 1);
    await settled();
    rig.log.beforePage = () => {
      rig.log.beforePage = () => {};
      rig.store.drop(TOPIC);
    };
    expect(await read(subscriber, 1)).toEqual(['gap epoch']);
  });
});

describe('where a reader begins', () => {
  test('on a running tail, where the tail is now and not where it began', async () => {
    const rig = new Rig(10);
    const first = await rig.live();
    await rig.append(1, 1);
    expect(await take(first, 2)).toEqual([0, 1]);
    const pages = rig.log.pages;
    const second = await rig.live();
    await rig.append(1);
    expect(await take(second, 1)).toEqual([2]);
    // Nobody asked the log where it ends.
    expect(rig.log.pages).toBe(pages);
  });

  test('a position that the ring proves costs no read of the log', async () => {
    const rig = new Rig(10);
    await rig.live();
    const position = await rig.append(1);
    await rig.append(1);
    await settled();
    const pages = rig.log.pages;
    const resumed = await rig.subscriber();
    expect(await resumed.resume(position)).toBeUndefined();
    expect(await take(resumed, 1)).toEqual([1]);
    expect(rig.log.pages).toBe(pages);
  });

  test('at the oldest of an empty topic, and at what comes', async () => {
    const rig = new Rig(10);
    const subscriber = await rig.subscriber();
    expect(await subscriber.resume('earliest')).toBeUndefined();
    const reading = take(subscriber, 2);
    await rig.append(2);
    expect(await reading).toEqual([0, 1]);
  });

  test('past a tail that has not come so far', async () => {
    const rig = new Rig(10);
    const first = await rig.live();
    await settled();
    rig.log.beforeFollow = () => settled();
    rig.log.breakReads();
    const position = await rig.append(1, 1);
    const subscriber = await rig.subscriber();
    expect(await subscriber.resume(position)).toBeUndefined();
    const reading = take(subscriber, 1);
    await rig.clock.untilWait(0);
    rig.clock.advance(0);
    await rig.append(1);
    expect(await reading).toEqual([2]);
    expect(await take(first, 3)).toEqual([0, 1, 2]);
  });

  test('at the end of a log that goes on by more than the ring holds before that is known', async () => {
    const rig = new Rig(1);
    await rig.live();
    const subscriber = await rig.subscriber();
    const asked = rig.log.pages + 1;
    rig.log.afterPage = async (call) => {
      if (call !== asked) return;
      await rig.append(1, 1, 1);
      await settled();
    };
    expect(await subscriber.resume('earliest')).toBeUndefined();
    expect(await take(subscriber, 3)).toEqual([0, 1, 2]);
  });

  test('at the end of a log that is replaced before that is known', async () => {
    const rig = new Rig(1);
    await rig.live();
    const subscriber = await rig.subscriber();
    const asked = rig.log.pages + 1;
    rig.log.afterPage = async (call) => {
      if (call !== asked) return;
      rig.store.drop(TOPIC);
      await rig.append(1, 1, 1);
      await settled();
    };
    expect(await subscriber.resume('earliest')).toBeUndefined();
    expect(await take(subscriber, 1)).toEqual(['gap epoch']);
  });

  test.each<[string, (position: Position) => Position, string]>([
    ['another epoch', (at) => ({ ...at, epoch: 'AAAAAAAAAAAA' }), 'epoch'],
    ['another id', (at) => ({ ...at, id: '77' }), 'forked'],
    ['past the end', (at) => ({ ...at, id: '9', ordinal: 9 }), 'ahead'],
    ['far back', (at) => ({ ...at, id: '1', ordinal: 1 }), 'trimmed'],
  ])('not at a position with %s', async (_, change, loss) => {
    const rig = new Rig(10);
    await rig.append(1, 1, 1);
    const position = await rig.append(1);
    rig.store.trim(TOPIC, 1);
    const subscriber = await rig.subscriber();
    expect(await subscriber.resume(change(position))).toBe(loss);
  });

  test('just after the last trimmed commit nothing is missed', async () => {
    const rig = new Rig(10);
    const [before, edge] = [await rig.append(1), await rig.append(1)];
    await rig.append(1);
    rig.store.trim(TOPIC, 1);
    expect(await (await rig.subscriber()).resume(before)).toBe('trimmed');
    const subscriber = await rig.subscriber();
    expect(await subscriber.resume(edge)).toBeUndefined();
    expect(await take(subscriber, 1)).toEqual([2]);
  });
});

test('the cursor moves with whole commits alone', async () => {
  const rig = new Rig(10);
  const subscriber = await rig.live();
  await rig.append(1, 3);
  const ordinals: number[] = [];
  for (let n = 0; n < 4; n += 1) {
    await take(subscriber, 1);
    ordinals.push(subscriber.cursor.ordinal);
  }
  expect(ordinals).toEqual([1, 1, 1, 2]);
});
