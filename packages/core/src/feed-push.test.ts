import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { gate } from '../../../test/support/gate.ts';
import { Moments } from '../../../test/support/moments.ts';
import { FeedRig, settled, subscribe, TOPIC, turns } from '../test/support/feed-rig.ts';
import { OUTAGE } from '../test/support/scripted-log.ts';
import type { Feed, FeedOptions, FeedReader } from './index.ts';
import type { EncodedRun, FrameEncoder, PushTarget } from './push-target.ts';

/** Writes frames as JSON, and counts them. */
class JsonEncoder implements FrameEncoder {
  encoded = 0;
  readonly json: (string | undefined)[] = [];

  encode(token: string, value: unknown, json?: string): string {
    this.encoded += 1;
    this.json.push(json);
    if (value === 'unwritable') throw new TypeError('this value cannot be written');
    return JSON.stringify({ token, value });
  }
}

/** A connection that keeps what it was given. */
class Socket implements PushTarget {
  readonly encoder: FrameEncoder;
  readonly runs: EncodedRun[] = [];
  full = false;
  readonly #moments = new Moments();
  #whenWritable: (() => void)[] = [];

  constructor(encoder: FrameEncoder) {
    this.encoder = encoder;
  }

  isFull(): boolean {
    return this.full;
  }

  whenWritable(callback: () => void): void {
    this.#whenWritable.push(callback);
  }

  drain(): void {
    this.full = false;
    for (const callback of this.#whenWritable.splice(0)) callback();
  }

  write(run: EncodedRun): void {
    this.runs.push(run);
    this.#moments.tell();
  }

  get frames(): { token: string; value: unknown }[] {
    return this.runs.flatMap((run) => run.frames.map((text) => JSON.parse(text)));
  }

  get values(): unknown[] {
    return this.frames.map((frame) => frame.value);
  }

  async got(count: number): Promise<unknown[]> {
    await this.#moments.until(
      () => this.frames.length >= count,
      () => `${this.frames.length} frames came, not ${count}: ${JSON.stringify(this.values)}`,
    );
    return this.values;
  }
}

interface Pushed {
  readonly socket: Socket;
  readonly reader: FeedReader;
  readonly ended: Promise<void>;
}

async function push(feed: Feed, encoder: FrameEncoder, lastEventId?: unknown): Promise<Pushed> {
  const { reader } = await subscribe(feed, lastEventId);
  const socket = new Socket(encoder);
  const ended = reader.push(socket);
  ended.catch(() => {});
  return { socket, reader, ended };
}

describe('sharing', () => {
  test('two feeds of one topic never share a frame, although they share an encoder', async () => {
    const rig = new FeedRig({ prepare: (value) => ({ seen: 'all of it', value }) });
    const encoder = new JsonEncoder();
    const redacted = rig.another({
      secret: 'the secret of the other feed',
      prepare: () => 'redacted',
    });
    const mapped = rig.another({ prepare: () => 'half', filter: () => true });
    const all = await push(rig.feed, encoder);
    const some = await push(redacted, encoder);
    const half = await push(mapped, encoder);
    await rig.append('a', 'b');
    expect(await some.socket.got(2)).toEqual(['redacted', 'redacted']);
    expect(await half.socket.got(2)).toEqual(['half', 'half']);
    expect(await all.socket.got(2)).toEqual([
      { seen: 'all of it', value: 'a' },
      { seen: 'all of it', value: 'b' },
    ]);
    expect(some.socket.frames[1]?.token).not.toBe(all.socket.frames[1]?.token);
    // Each token is its own feed's.
    await rig.append('c');
    const resumed = await subscribe(redacted, some.socket.frames[1]?.token);
    expect(await resumed.values(1)).toEqual(['redacted']);
  });

  test('an entry is encoded once for all that get the same, and the bytes are the same', async () => {
    const rig = new FeedRig();
    const encoder = new JsonEncoder();
    const pushes = await Promise.all(Array.from({ length: 20 }, () => push(rig.feed, encoder)));
    await rig.append('a', 'b');
    await rig.append('c');
    for (const { socket } of pushes) expect(await socket.got(3)).toEqual(['a', 'b', 'c']);
    expect(encoder.encoded).toBe(3);
  });

  test('bound tokens are not shared', async () => {
    const rig = new FeedRig<{ user: string }>({ bind: ({ user }) => user });
    const encoder = new JsonEncoder();
    const sockets = ['anna', 'bert'].map(() => new Socket(encoder));
    for (const [index, user] of ['anna', 'bert'].entries()) {
      const { reader } = await rig.open(undefined, { user });
      void reader.push(sockets[index] as Socket);
    }
    await rig.append('a');
    const [anna, bert] = await Promise.all(
      sockets.map(async (socket) => {
        await socket.got(1);
        return socket.frames[0]?.token;
      }),
    );
    expect(anna).not.toBe(bert);
    await expect(rig.open(bert, { user: 'anna' })).rejects.toMatchObject({ reason: 'signature' });
    await rig.append('b');
    expect(await (await rig.open(bert, { user: 'bert' })).values(1)).toEqual(['b']);
  });
});

describe('the same frames as a pulled feed', () => {
  test('come whatever is appended, whenever the connection is full', async () => {
    const step = fc.oneof(
      { weight: 5, arbitrary: fc.record({ append: fc.integer({ min: 1, max: 4 }) }) },
      { weight: 2, arbitrary: fc.record({ full: fc.boolean() }) },
      { weight: 2, arbitrary: fc.record({ turns: fc.nat(12) }) },
      { weight: 1, arbitrary: fc.constant({ breaks: true }) },
    );
    const setup = fc.record({
      highWaterMark: fc.constantFrom(1, 3, 100),
      map: fc.boolean(),
      filter: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(setup, fc.array(step, { maxLength: 25 }), async (options, steps) => {
        const rig = new FeedRig({
          highWaterMark: options.highWaterMark,
          retryDelaysMs: [0, 0, 0, 0, 0],
          ...(options.map && {
            map: (value) => (Number(value) % 3 === 0 ? Promise.resolve(value) : value),
          }),
          ...(options.filter && { filter: (value) => Number(value) % 4 !== 1 }),
        });
        const pushed = await push(rig.feed, new JsonEncoder());
        let count = 0;
        for (const doing of steps) {
          if ('append' in doing) {
            await rig.append(...Array.from({ length: doing.append }, () => count++));
          } else if ('turns' in doing) await turns(doing.turns);
          else if ('breaks' in doing) rig.log.breakReads();
          else if (doing.full) pushed.socket.full = true;
          else pushed.socket.drain();
          rig.clock.advance(0);
        }
        await settled();
        rig.clock.advance(0);
        pushed.socket.drain();
        await rig.append('last');
        const passes = (value: unknown): boolean => !options.filter || Number(value) % 4 !== 1;
        const expected = [...Array(count).keys()].filter(passes);
        expect(await pushed.socket.got(expected.length + 1)).toEqual([...expected, 'last']);
        // Tokens are those of a pulled feed.
        const pulled = rig.another({ from: 'earliest' });
        const frames = await (await subscribe(pulled)).take(count + 1);
        const tokens = new Map(frames.map((frame) => [frame.value, frame.token]));
        for (const frame of pushed.socket.frames) expect(tokens.get(frame.value)).toBe(frame.token);
        pushed.reader.close();
        await pushed.ended;
      }),
      { numRuns: 100 },
    );
  });

  test('a gap brings the snapshot in its place', async () => {
    const rig = new FeedRig({ highWaterMark: 1, onGap: () => ['s1', 's2'] });
    const pushed = await push(rig.feed, new JsonEncoder());
    await rig.append('a');
    await pushed.socket.got(1);
    pushed.socket.full = true;
    await rig.appendEach('b', 'c', 'd');
    await settled();
    rig.trim(1);
    pushed.socket.drain();
    await pushed.socket.got(2);
    await settled();
    await rig.append('e');
    const values = await pushed.socket.got(4);
    expect(values.slice(0, 1)).toEqual(['a']);
    expect(values.slice(-3)).toEqual(['s1', 's2', 'e']);
  });
});

test.each(['prepare', 'filter', 'map'] as const)(
  'what waits for a slow %s holds up what is behind it, and not what is before',
  async (stage) => {
    const slow = gate();
    const rig = new FeedRig({
      [stage]: async (value: unknown) => {
        if (value === 'slow') await slow.pass();
        return stage === 'filter' ? true : value;
      },
    });
    const encoder = new JsonEncoder();
    const pushes = await Promise.all([push(rig.feed, encoder), push(rig.feed, encoder)]);
    slow.close();
    await rig.append('a', 'b', 'slow', 'c');
    for (const { socket } of pushes) expect(await socket.got(2)).toEqual(['a', 'b']);
    slow.open();
    for (const { socket } of pushes) expect(await socket.got(4)).toEqual(['a', 'b', 'slow', 'c']);
    expect(encoder.encoded).toBe(stage === 'map' ? 8 : 4);
  },
);

test('a gap after each time that all had come is answered for ever', async () => {
  const rig = new FeedRig({ onGap: ({ gap }) => gap.reason });
  const { socket } = await push(rig.feed, new JsonEncoder());
  for (let round = 1; round <= 12; round += 1) {
    await settled();
    rig.drop();
    await socket.got(round);
  }
  expect(socket.values).toEqual(Array.from({ length: 12 }, () => 'epoch'));
});

describe('a run of values that take their time', () => {
  test('leaves other work of the process its turns', async () => {
    let mapped = 0;
    const seen: number[] = [];
    const turn = (): void => {
      seen.push(mapped);
      if (mapped < 64) setImmediate(turn);
    };
    const rig = new FeedRig({
      map: async (value) => {
        mapped += 1;
        return value;
      },
    });
    const { socket } = await push(rig.feed, new JsonEncoder());
    setImmediate(turn);
    await rig.append(...Array.from({ length: 64 }, (_, n) => n));
    await socket.got(64);
    expect(seen.filter((count) => count > 0 && count < 64).length).toBeGreaterThan(2);
  });

  test('is not made on for a subscription that has ended', async () => {
    let mapped = 0;
    const rig = new FeedRig({
      map: async (value) => {
        mapped += 1;
        if (mapped === 3) reader.close();
        return value;
      },
    });
    const { reader, ended } = await push(rig.feed, new JsonEncoder());
    await rig.append(...Array.from({ length: 64 }, (_, n) => n));
    await ended;
    await settled();
    await settled();
    expect(mapped).toBe(3);
  });
});

test.each<[string | undefined, FeedOptions]>([
  ['"a"', {}],
  ['"a"', { decode: 'json', filter: () => true }],
  [undefined, { decode: 'text' }],
  [undefined, { decode: (text) => text }],
  [undefined, { schema: z.string() }],
  [undefined, { prepare: (value) => value }],
  [undefined, { map: (value) => value }],
])('an encoder is given %s as the JSON of an entry by a feed with %o', async (json, options) => {
  const rig = new FeedRig(options);
  const encoder = new JsonEncoder();
  const { socket } = await push(rig.feed, encoder);
  await rig.append('a');
  await socket.got(1);
  expect(encoder.json).toEqual([json]);
});

test('an entry that is not JSON is left out, though its text would not have to be read', async () => {
  const rig = new FeedRig();
  const encoder = new JsonEncoder();
  const { socket } = await push(rig.feed, encoder);
  await rig.log.append(TOPIC, ['{', '"b"']);
  await socket.got(1);
  expect(encoder.json).toEqual(['"b"']);
});

describe('the end of a pushed feed', () => {
  test('closing it resolves, and leaves nothing', async () => {
    const rig = new FeedRig();
    const { reader, ended } = await push(rig.feed, new JsonEncoder());
    reader.close();
    await ended;
    expect(rig.tails).toBe(0);
  });

  test('closing it while the connection is full resolves too', async () => {
    const rig = new FeedRig();
    const { socket, reader, ended } = await push(rig.feed, new JsonEncoder());
    socket.full = true;
    await rig.append('a');
    await settled();
    reader.close();
    await ended;
    socket.drain();
    await settled();
    expect(socket.values).toEqual([]);
  });

  test.each<[string, string | undefined]>([
    ['live', undefined],
    ['in a gap', 'bad'],
  ])('one that was closed before, %s, resolves and is pushed nothing', async (_, token) => {
    const rig = new FeedRig({ from: 'earliest', onGap: () => ['s1', 's2'] });
    await rig.append('a');
    const { reader } = await rig.open(token);
    reader.close();
    const socket = new Socket(new JsonEncoder());
    await reader.push(socket);
    await settled();
    expect(socket.values).toEqual([]);
    expect(rig.meter.of('brokerfeed.feed.snapshots')).toBe(0);
  });

  test('a lost log rejects with 503', async () => {
    const rig = new FeedRig({ retryDelaysMs: [] });
    const { ended } = await push(rig.feed, new JsonEncoder());
    await settled();
    rig.log.breakReads(OUTAGE);
    await expect(ended).rejects.toMatchObject({ status: 503, reason: 'unavailable' });
    expect(rig.tails).toBe(0);
  });

  test('an entry that ends the feed comes after all entries before it', async () => {
    const rig = new FeedRig({
      onEntryError: 'end',
      map: (value) => {
        if (value === 'bad') throw new Error('bad');
        return value;
      },
    });
    const { socket, ended } = await push(rig.feed, new JsonEncoder());
    await rig.append('a', 'b', 'bad', 'c');
    await expect(ended).rejects.toMatchObject({ status: 422, reason: 'entry' });
    expect(socket.values).toEqual(['a', 'b']);
  });

  test('so does one that cannot be written, and where it is skipped the others come', async () => {
    const skipping = new FeedRig();
    const skipped = await push(skipping.feed, new JsonEncoder());
    await skipping.append('a', 'unwritable', 'b');
    expect(await skipped.socket.got(2)).toEqual(['a', 'b']);
    expect(skipping.meter.of('brokerfeed.feed.refused encode')).toBe(1);

    const ending = new FeedRig({ onEntryError: 'end' });
    const ended = await push(ending.feed, new JsonEncoder());
    await ending.append('a', 'unwritable', 'b');
    await expect(ended.ended).rejects.toMatchObject({ status: 422 });
    expect(ended.socket.values).toEqual(['a']);
  });
});
