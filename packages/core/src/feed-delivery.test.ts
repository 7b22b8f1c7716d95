import { describe, expect, test } from 'vitest';
import { FeedRig, settled, subscribe, turns } from '../test/support/feed-rig.ts';
import type { FeedEntry } from './index.ts';

describe('work that is shared', () => {
  test('a thousand subscribers cost one live read and one signature an entry', async () => {
    const rig = new FeedRig();
    const all = await Promise.all(Array.from({ length: 1000 }, () => rig.open()));
    const reading = all.map(({ take }) => take(5));
    await rig.append(1);
    await rig.append(2, 3);
    await rig.appendEach(4, 5);
    const frames = await Promise.all(reading);
    for (const each of frames) expect(each).toEqual(frames[0]);
    expect(rig.meter.of('brokerfeed.tail.started')).toBe(1);
    expect(rig.meter.of('brokerfeed.feed.signatures')).toBe(5);
    expect(rig.meter.of('brokerfeed.pages.read')).toBe(0);
  });

  test('a herd that resumes from one place reads its pages once', async () => {
    const rig = new FeedRig({ highWaterMark: 1 });
    const first = await rig.open();
    await rig.append('a');
    const [held] = await first.take(1);
    for (let n = 0; n < 300; n += 1) await rig.append(n);
    await settled();
    const herd = await Promise.all(Array.from({ length: 50 }, () => rig.open(held?.token)));
    for (const { values } of herd) expect(await values(300)).toHaveLength(300);
    // Two pages of entries; the last place is the tip, which the ring knows.
    expect(rig.meter.of('brokerfeed.pages.read')).toBeLessThanOrEqual(3);
    expect(rig.meter.of('brokerfeed.feed.signatures')).toBeLessThanOrEqual(1 + 300);
  });

  test('with nobody on the topic, nothing is read and nothing is signed', async () => {
    const rig = new FeedRig();
    await rig.appendEach(1, 2, 3);
    await settled();
    expect(rig.log.pages + rig.log.follows).toBe(0);
    expect(rig.meter.of('brokerfeed.feed.signatures')).toBe(0);
  });

  test('prepare runs once for all, map for each', async () => {
    let prepared = 0;
    let mapped = 0;
    const rig = new FeedRig({
      prepare: (value) => {
        prepared += 1;
        return { value };
      },
      map: (value) => {
        mapped += 1;
        return value;
      },
    });
    const all = await Promise.all(Array.from({ length: 10 }, () => rig.open()));
    await rig.append('a', 'b');
    const values = await Promise.all(all.map(({ values: read }) => read(2)));
    expect([prepared, mapped]).toEqual([2, 20]);
    expect(values[0]?.[0]).toBe(values[9]?.[0]);
  });

  test('an async prepare runs once, also while it runs', async () => {
    let prepared = 0;
    const rig = new FeedRig({
      prepare: async (value) => {
        prepared += 1;
        await turns(10);
        return value;
      },
    });
    const all = await Promise.all(Array.from({ length: 10 }, () => rig.open()));
    const reading = all.map(({ values }) => values(2));
    await rig.append('a', 'b');
    expect(await Promise.all(reading)).toEqual(Array(10).fill(['a', 'b']));
    expect(prepared).toBe(2);
  });

  test('without prepare each subscriber has values of its own', async () => {
    const rig = new FeedRig<{ tag: string }>({
      map: (value, _, { tag }) => {
        (value as { tags: string[] }).tags.push(tag);
        return value;
      },
    });
    const [one, two] = await Promise.all([
      rig.open(undefined, { tag: 'one' }),
      rig.open(undefined, { tag: 'two' }),
    ]);
    await rig.append({ tags: [] });
    expect(await one.values(1)).toEqual([{ tags: ['one'] }]);
    expect(await two.values(1)).toEqual([{ tags: ['two'] }]);
    const plain = rig.another({ from: 'earliest' });
    const [first, second] = await Promise.all([subscribe(plain), subscribe(plain)]);
    const [a, b] = [(await first.values(1))[0], (await second.values(1))[0]];
    expect(a).toEqual(b);
    expect(a).not.toBe(b);
  });

  test('feeds of one topic with different secrets and callbacks keep their own', async () => {
    const rig = new FeedRig({ prepare: () => 'one' });
    const other = rig.another({ secret: 'the secret of the other feed', prepare: () => 'two' });
    const [one, two] = [await rig.open(), await subscribe(other)];
    await rig.append('x');
    const [[a], [b]] = await Promise.all([one.take(1), two.take(1)]);
    expect([a?.value, b?.value]).toEqual(['one', 'two']);
    expect(a?.token).not.toBe(b?.token);
    await expect(subscribe(other, a?.token)).rejects.toMatchObject({ reason: 'signature' });
  });
});

describe('the way of a value', () => {
  test('filter and map see value, entry and arguments, and decide', async () => {
    const seen: FeedEntry[] = [];
    const rig = new FeedRig<{ min: number }>({
      filter: (value, { min, entry }) => {
        seen.push(entry);
        return Number(value) >= min;
      },
      map: (value, entry, { min }) =>
        value === 5 ? undefined : `${min}:${value}:${entry.headers.h}`,
    });
    const { values } = await rig.open(undefined, { min: 3 });
    await rig.log.append('orders', ['1', '3', '5'], { headers: { h: 'x' } });
    await rig.append(7);
    expect(await values(2)).toEqual(['3:3:x', '3:7:undefined']);
    expect(
      seen.map(({ topic, generation, index, value }) => [topic, generation, index, value]),
    ).toEqual([
      ['orders', 1, 0, '1'],
      ['orders', 1, 1, '3'],
      ['orders', 1, 2, '5'],
      ['orders', 2, 0, '7'],
    ]);
  });

  test('callbacks that take their time keep the order', async () => {
    const slowly = async <T>(value: T): Promise<T> => {
      await turns(Number(value) % 5);
      return value;
    };
    const rig = new FeedRig({
      prepare: slowly,
      filter: async (value) => (await slowly(value)) !== 3,
      map: (value) => (Number(value) % 2 === 0 ? value : slowly(value)),
    });
    const { values } = await rig.open();
    await rig.append(...Array(10).keys());
    expect(await values(9)).toEqual([0, 1, 2, 4, 5, 6, 7, 8, 9]);
  });

  test('a filter passes on true alone', async () => {
    const rig = new FeedRig({ filter: (value) => value as boolean });
    const { values } = await rig.open();
    await rig.append(1, 'yes', {}, true);
    expect(await values(1)).toEqual([true]);
  });

  test.each([
    ['text', 'text' as const, ['{"a":1}', 'no json']],
    ['a function', (text: string) => text.length, [7, 7]],
  ])('decodes as %s', async (_, decode, expected) => {
    const rig = new FeedRig({ decode });
    const { values } = await rig.open();
    await rig.log.append('orders', ['{"a":1}', 'no json']);
    expect(await values(2)).toEqual(expected);
  });

  test('a schema shapes and refuses, at once or later', async () => {
    const schema = (isAsync: boolean) => ({
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate: (value: unknown) => {
          const result =
            typeof value === 'number'
              ? { value: value * 2 }
              : { issues: [{ message: 'no number', path: ['a', { key: 'b' }] }] };
          return isAsync ? Promise.resolve(result) : result;
        },
      },
    });
    for (const isAsync of [false, true]) {
      const rig = new FeedRig({ schema: schema(isAsync) });
      const { values } = await rig.open();
      await rig.append(1, 'x', 2);
      expect(await values(2)).toEqual([2, 4]);
      const [line] = rig.lines;
      expect(line).toMatchObject({
        level: 'warn',
        event: 'brokerfeed.feed.refused',
        fields: { stage: 'decode' },
      });
      expect(String(line?.fields.err)).toContain('a.b: no number');
    }
  });
});

describe('an entry that fails', () => {
  const fails = (value: unknown): never => {
    throw new Error(`cannot take ${value}`);
  };
  const unless = (value: unknown): unknown => (value === 'bad' ? fails(value) : value);
  const later = async (value: unknown): Promise<unknown> => unless(value);
  const stages = [
    ['decode', { decode: (text: string) => unless(JSON.parse(text)) }],
    ['prepare', { prepare: unless }],
    ['prepare', { prepare: later }],
    ['filter', { filter: (value: unknown) => unless(value) !== undefined }],
    ['filter', { filter: async (value: unknown) => (await later(value)) !== undefined }],
    ['map', { map: unless }],
    ['map', { map: later }],
  ] as const;

  test.each(stages)(
    'in %s is skipped, and reported once for all subscribers',
    async (stage, options) => {
      const rig = new FeedRig(options);
      const all = await Promise.all([rig.open(), rig.open(), rig.open()]);
      await rig.append('a', 'bad', 'b');
      for (const { values } of all) expect(await values(2)).toEqual(['a', 'b']);
      expect(rig.meter.of(`brokerfeed.feed.refused ${stage}`)).toBe(1);
      expect(rig.lines.filter(({ event }) => event === 'brokerfeed.feed.refused')).toHaveLength(1);
      for (const { reader } of all) reader.close();
      expect(rig.lines.at(-1)).toMatchObject({
        event: 'brokerfeed.feed.refused.total',
        fields: { stage, count: 1 },
      });
    },
  );

  test.each(stages)('in %s ends the feed where that was asked for', async (_, options) => {
    const rig = new FeedRig({ ...options, onEntryError: 'end' });
    const all = await Promise.all([rig.open(), rig.open()]);
    await rig.append('a', 'bad', 'b');
    for (const { values, reader } of all) {
      expect(await values(1)).toEqual(['a']);
      await expect(reader.next()).rejects.toMatchObject({ status: 422, reason: 'entry' });
      expect(await reader.next()).toBeUndefined();
    }
    expect(rig.tails).toBe(0);
  });

  test('does not flood the log', async () => {
    const rig = new FeedRig();
    const { values } = await rig.open();
    await rig.log.append(
      'orders',
      Array.from({ length: 50 }, () => 'no json'),
    );
    await rig.append('good');
    expect(await values(1)).toEqual(['good']);
    expect(rig.lines.map(({ level }) => level)).toEqual(['warn', ...Array(49).fill('debug')]);
    rig.clock.advance(10_000);
    await rig.log.append('orders', 'no json');
    await rig.append('good');
    await values(1);
    expect(rig.lines.at(-1)?.level).toBe('warn');
    expect(rig.meter.of('brokerfeed.feed.refused')).toBe(51);
  });
});

test('a flood does not keep the process from its other work', async () => {
  const rig = new FeedRig();
  const { values } = await rig.open();
  await rig.append(...Array(2000).keys());
  let immediates = 0;
  let reading = true;
  const count = (): void => {
    immediates += 1;
    if (reading) setImmediate(count);
  };
  setImmediate(count);
  await values(2000);
  reading = false;
  expect(immediates).toBeGreaterThan(8);
});
