import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { FeedRig, settled, TOPIC, turns } from '../test/support/feed-rig.ts';
import { OUTAGE } from '../test/support/scripted-log.ts';

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

/** A signal that knows who listens. */
function watchedSignal(): { signal: AbortSignal; abort(): void; listeners: Set<unknown> } {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = new Set<unknown>();
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (type: string, listener: never, options?: never) => {
    listeners.add(listener);
    add(type, listener, options);
  };
  signal.removeEventListener = (type: string, listener: never, options?: never) => {
    listeners.delete(listener);
    remove(type, listener, options);
  };
  return { signal, abort: () => controller.abort(), listeners };
}

const stuck = (): Promise<never> => new Promise(() => {});

async function* stuckSeries(): AsyncGenerator<string> {
  yield 's1';
  yield 's2';
  await stuck();
}

/** Where a reader may be when its client leaves. */
const phases: Record<
  string,
  () => { rig: FeedRig; token?: string; frames?: number; act?: (rig: FeedRig) => unknown }
> = {
  'waiting for an entry': () => ({ rig: new FeedRig() }),
  'waiting for an entry with control frames': () => ({
    rig: new FeedRig({ control: true }),
    frames: 2,
  }),
  'waiting in a snapshot that never comes': () => ({
    rig: new FeedRig({ onGap: stuck }),
    token: 'bad',
  }),
  'waiting in a series that never goes on': () => ({
    rig: new FeedRig({ onGap: stuckSeries }),
    token: 'bad',
    frames: 1,
  }),
  'waiting in a shared snapshot': () => ({
    rig: new FeedRig({ onGap: stuck, shareGap: () => 'all' }),
    token: 'bad',
  }),
  'waiting in a map': () => ({ rig: new FeedRig({ map: stuck }), act: (rig) => rig.append('a') }),
  'waiting in a filter': () => ({
    rig: new FeedRig({ filter: stuck }),
    act: (rig) => rig.append('a'),
  }),
  'waiting in prepare': () => ({
    rig: new FeedRig({ prepare: stuck }),
    act: (rig) => rig.append('a'),
  }),
  'waiting for a page': () => ({
    rig: new FeedRig({ highWaterMark: 1, filter: (value) => value === 'a' }),
    act: async (rig) => {
      rig.log.beforePage = stuck;
      await rig.append('b');
      await rig.appendEach('c', 'd', 'e');
    },
  }),
  'waiting for the end of an outage': () => ({
    rig: new FeedRig(),
    act: async (rig) => {
      await settled();
      rig.log.beforeFollow = () => {
        throw OUTAGE;
      };
      rig.log.breakReads();
    },
  }),
};

describe.each(Object.keys(phases))('a client that leaves while it is %s', (name) => {
  test.each(['abort', 'close'] as const)('by %s, settles and leaves nothing', async (how) => {
    const { rig, token, frames = 0, act } = phases[name]?.() ?? expect.fail('no such phase');
    const { signal, abort, listeners } = watchedSignal();
    const reader = await rig.feed.open({ topic: TOPIC, lastEventId: token, args: {}, signal });
    for (let n = 0; n < frames; n += 1) await reader.next();
    const pending = [reader.next(), reader.next()];
    await act?.(rig);
    await settled();
    if (how === 'abort') abort();
    else reader.close();
    expect(await Promise.all(pending)).toEqual([undefined, undefined]);
    expect(await reader.next()).toBeUndefined();
    reader.close();
    await settled();
    expect(rig.tails).toBe(0);
    expect(rig.log.reads).toBe(0);
    expect(listeners.size).toBe(0);
    expect(rig.clock.waits.filter((ms) => ms > 2_000)).toEqual([]);
  });
});

describe('a client that leaves at any moment', () => {
  const setups: Record<
    string,
    () => { rig: FeedRig; token?: string; prepare?: (rig: FeedRig) => Promise<unknown> }
  > = {
    'of a fresh start': () => ({ rig: new FeedRig({ control: true }) }),
    'of a start at the oldest': () => ({
      rig: new FeedRig({ control: true, from: 'earliest', highWaterMark: 1 }),
      prepare: (rig) => rig.appendEach(1, 2, 3),
    }),
    'of a start with a gap': () => ({
      rig: new FeedRig({ control: true, onGap: async () => ['s1', 's2', 's3'] }),
      token: 'bad',
    }),
    'of a start that is refused': () => ({ rig: new FeedRig({ control: true }), token: 'bad' }),
    'of a start with a slow bind': () => ({
      rig: new FeedRig({ control: true, bind: async () => 'anna' }),
    }),
  };

  test.each(Object.keys(setups))('%s leaves no tail, no timer and no listener', async (name) => {
    for (let at = 0; at < 40; at += 1) {
      const { rig, token, prepare } = setups[name]?.() ?? expect.fail('no such start');
      await prepare?.(rig);
      const { signal, abort, listeners } = watchedSignal();
      const reading = rig.feed
        .open({ topic: TOPIC, lastEventId: token, args: {}, signal })
        .then(async (reader) => {
          for (;;) if ((await reader.next()) === undefined) return;
        })
        .catch((error) => expect(error).toMatchObject({ name: 'FeedRefusal' }));
      await turns(at);
      abort();
      await reading;
      await settled();
      expect(rig.tails, `after ${at} turns`).toBe(0);
      expect(listeners.size, `after ${at} turns`).toBe(0);
      // A page that was read is kept for a moment.
      rig.clock.advance(2_000);
      expect(rig.clock.waits, `after ${at} turns`).toEqual([]);
    }
  });

  test('before it asks is served nothing', async () => {
    const rig = new FeedRig({ from: 'earliest', onGap: () => 'state' });
    await rig.append('a');
    const signal = AbortSignal.abort();
    for (const lastEventId of [undefined, 'bad']) {
      const reader = await rig.feed.open({ topic: TOPIC, lastEventId, args: {}, signal });
      expect(await reader.next()).toBeUndefined();
    }
    await settled();
    expect(rig.tails).toBe(0);
    expect(rig.meter.of('brokerfeed.feed.snapshots')).toBe(0);
  });
});

test('a series that is left is told to end', async () => {
  let ended = false;
  const rig = new FeedRig({
    onGap: async function* () {
      try {
        yield 's1';
        yield 's2';
        yield 's3';
      } finally {
        ended = true;
      }
    },
  });
  const { take, reader } = await rig.open('bad');
  await take(1);
  reader.close();
  await settled();
  expect(ended).toBe(true);
});

test('a reader that nobody reads is released by its signal', async () => {
  const rig = new FeedRig();
  const { abort } = await rig.open();
  expect(rig.tails).toBe(1);
  abort.abort();
  expect(rig.tails).toBe(0);
});

test('a failure that comes after the client left is nobody’s', async () => {
  for (const option of ['map', 'filter', 'prepare', 'onGap'] as const) {
    let fail = (_: Error): void => {};
    const rig = new FeedRig({
      [option]: () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
      onEntryError: 'end',
    });
    const { reader } = await rig.open(option === 'onGap' ? 'bad' : undefined);
    const next = reader.next();
    await rig.append('a');
    await settled();
    reader.close();
    expect(await next).toBeUndefined();
    fail(new Error('too late'));
    await settled();
  }
});

test('reads that overlap are answered in order', async () => {
  const rig = new FeedRig();
  const { reader } = await rig.open();
  const reading = Promise.all([reader.next(), reader.next(), reader.next()]);
  await rig.append('a', 'b');
  await rig.append('c');
  expect((await reading).map((frame) => frame?.value)).toEqual(['a', 'b', 'c']);
});

test('a member that leaves others behind takes nothing from them', async () => {
  const rig = new FeedRig();
  const [one, two] = [await rig.open(), await rig.open()];
  const next = two.values(1);
  one.reader.close();
  one.reader.close();
  await rig.append('a');
  expect(await next).toEqual(['a']);
  expect(rig.meter.of('brokerfeed.tail.started')).toBe(1);
});
