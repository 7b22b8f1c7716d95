import type { Position } from '@brokerfeed/core';
import { describe, expect, test } from 'vitest';
import { startRedis } from '../../../test/support/redis.ts';
import { at, openTopic, type TestTopic } from './support.ts';

/** What is told to readers at the start and after each commit. */
async function verdicts(topic: TestTopic, positions: readonly Position[]): Promise<string> {
  const told: string[] = [];
  for (const position of positions) told.push(await topic.verdict(position));
  return told.join(' ');
}

async function written(topic: TestTopic, count: number): Promise<Position[]> {
  const start = await topic.tip();
  return [start, ...(await topic.append(...Array.from({ length: count }, (_, i) => `v${i + 1}`)))];
}

describe('trims', () => {
  test('the boundary is exact by count and by link', async () => {
    await using topic = openTopic();
    const positions = await written(topic, 5);
    await topic.client.xtrim(topic.key, 'MAXLEN', '=', 2);
    expect(await verdicts(topic, positions)).toBe('trimmed trimmed trimmed ok ok ok');
    expect(await topic.values(at(positions, 3))).toEqual(['v4', 'v5']);
    const stranger = { ...at(positions, 3), id: at(positions, 2).id };
    expect(await topic.verdict(stranger)).toBe('forked');
  });

  test('the retention of the options is applied by appends, exactly on request', async () => {
    await using topic = openTopic({ retention: { maxEntries: 3, trim: 'exact' } });
    const positions = await written(topic, 5);
    expect(await topic.client.xlen(topic.key)).toBe(3);
    expect(await verdicts(topic, positions)).toBe('trimmed trimmed ok ok ok ok');
  });

  test('the newest commit outlives an age that is over', async () => {
    await using topic = openTopic({ retention: { maxAgeMs: 1, trim: 'exact' } });
    // An id from the past: it is older than the age when the append trims.
    await topic.client.xadd(topic.key, '1-0', 'v', 'old');
    const [position] = await topic.append('new');
    expect(await topic.values('earliest')).toEqual(['new']);
    expect(position?.ordinal).toBe(2);
  });

  test('an approximate trim keeps at least what it says', async () => {
    await using topic = openTopic({ retention: { maxEntries: 10 } });
    await Promise.all(Array.from({ length: 500 }, (_, i) => topic.log.append(topic.topic, `${i}`)));
    const kept = await topic.client.xlen(topic.key);
    expect(kept).toBeGreaterThanOrEqual(10);
    expect(kept).toBeLessThan(500);
    const { first, last } = await topic.log.bounds(topic.topic);
    expect(last.ordinal - first.ordinal).toBe(kept);
  });

  test('before a bare XADD the boundary is the count', async () => {
    await using topic = openTopic();
    for (const v of ['a', 'b', 'c']) await topic.client.xadd(topic.key, '*', 'v', v);
    const page = await topic.log.page(topic.topic, 'earliest', 10);
    if (page.verdict !== 'ok') throw new Error(page.verdict);
    const positions = [page.from, ...page.commits.map(({ position }) => position)];
    expect(positions.map(({ ordinal }) => ordinal)).toEqual([0, 1, 2, 3]);
    await topic.client.xtrim(topic.key, 'MAXLEN', '=', 1);
    expect(await verdicts(topic, positions)).toBe('trimmed trimmed ok ok');
    expect(await topic.values('earliest')).toEqual(['c']);
    expect(await topic.values((await topic.log.bounds(topic.topic)).first)).toEqual(['c']);
  });
});

describe('XDEL', () => {
  test('a commit deleted inside the log is a loss to whoever stood before it, and to nobody else', async () => {
    await using topic = openTopic();
    const positions = await written(topic, 5);
    await topic.client.xdel(topic.key, at(positions, 3).id);
    expect(await verdicts(topic, positions)).toBe('trimmed trimmed trimmed ok ok ok');
    expect(await topic.values(at(positions, 3))).toEqual(['v4', 'v5']);
    expect(await topic.values('earliest')).toEqual(['v4', 'v5']);
    expect((await topic.log.bounds(topic.topic)).first).toEqual(at(positions, 3));
  });

  test('the oldest commit deleted is as one trimmed', async () => {
    await using topic = openTopic();
    const positions = await written(topic, 3);
    await topic.client.xdel(topic.key, at(positions, 1).id);
    expect(await verdicts(topic, positions)).toBe('trimmed ok ok ok');
    expect(await topic.values('earliest')).toEqual(['v2', 'v3']);
  });

  test('the newest commit deleted leaves the tip where it was', async () => {
    await using topic = openTopic();
    const positions = await written(topic, 3);
    await topic.client.xdel(topic.key, at(positions, 3).id);
    expect(await verdicts(topic, positions)).toBe('trimmed trimmed trimmed ok');
    const [next] = await topic.append('v4');
    expect(next?.ordinal).toBe(4);
    expect(await topic.values(at(positions, 3))).toEqual(['v4']);
    expect(await verdicts(topic, positions)).toBe('trimmed trimmed trimmed ok');
  });

  test('ordinals stay right among deletes, trims and bare commits', async () => {
    await using topic = openTopic();
    const { client, key } = topic;
    const bare = (v: string) => client.xadd(key, '*', 'v', v) as Promise<string>;
    await topic.append('v1');
    await bare('v2');
    const doomed = await bare('v3');
    for (const v of ['v4', 'v5']) await bare(v);
    const [sixth] = await topic.append('v6');
    await bare('v7');
    await client.xdel(key, doomed);
    const { first, last } = await topic.log.bounds(topic.topic);
    expect([first.ordinal, first.id, last.ordinal]).toEqual([3, doomed, 7]);
    expect(sixth?.ordinal).toBe(6);
    expect(await topic.values(first)).toEqual(['v4', 'v5', 'v6', 'v7']);
    await client.xtrim(key, 'MAXLEN', '=', 1);
    expect((await topic.log.bounds(topic.topic)).first.ordinal).toBe(6);
  });
});

describe('other incarnations', () => {
  test('a key deleted is another log, also before anything is written', async () => {
    await using topic = openTopic();
    const positions = await written(topic, 2);
    await topic.client.del(topic.key);
    expect(await verdicts(topic, positions)).toBe('epoch epoch epoch');
  });

  test('a server flushed, or started again from nothing, holds other logs', async () => {
    await using redis = await startRedis();
    await using topic = openTopic({ url: redis.url });
    const positions = await written(topic, 2);
    await topic.client.flushall();
    await topic.append('v1', 'v2');
    expect(await verdicts(topic, positions)).toBe('epoch epoch epoch');
    await redis.restart();
    expect(await verdicts(topic, positions)).toBe('epoch epoch epoch');
  });

  test('a server started again from its file holds the same logs', async () => {
    await using redis = await startRedis({ args: ['--appendonly', 'yes'] });
    await using topic = openTopic({ url: redis.url });
    const positions = await written(topic, 3);
    await topic.client.xtrim(topic.key, 'MAXLEN', '=', 1);
    await redis.restart();
    expect(await verdicts(topic, positions)).toBe('trimmed trimmed ok ok');
    await redis.restart();
    const [next] = await topic.append('v4');
    expect(next).toMatchObject({ ordinal: 4, epoch: positions[0]?.epoch });
  });
});

describe('rollbacks', () => {
  async function rolledBack(topic: TestTopic) {
    const { client, key } = topic;
    const before = await written(topic, 2);
    const dump = await client.dumpBuffer(key);
    const lost = await topic.append('lost 3', 'lost 4');
    await client.restore(key, 0, dump as Buffer, 'REPLACE');
    return { before, lost };
  }

  test('a position past the end of a log rolled back is ahead', async () => {
    await using topic = openTopic();
    const { before, lost } = await rolledBack(topic);
    expect(await verdicts(topic, [...before, ...lost])).toBe('ok ok ok ahead ahead');
  });

  test('where other commits took the place of lost ones, their positions are forked', async () => {
    await using topic = openTopic();
    const { before, lost } = await rolledBack(topic);
    const others = await topic.append('other 3', 'other 4', 'other 5');
    expect(others.map(({ ordinal }) => ordinal)).toEqual([3, 4, 5]);
    expect(await verdicts(topic, [...before, ...lost, ...others])).toBe(
      'ok ok ok forked forked ok ok ok',
    );
  });

  test('a lost position is forked at the trim boundary too, where its ordinal alone would do', async () => {
    await using topic = openTopic();
    const { lost } = await rolledBack(topic);
    const others = await topic.append('other 3', 'other 4', 'other 5');
    await topic.client.xtrim(topic.key, 'MAXLEN', '=', 1);
    expect(await verdicts(topic, [at(lost, 1), at(others, 1)])).toBe('forked ok');
    await topic.client.xtrim(topic.key, 'MAXLEN', '=', 0);
    expect(await verdicts(topic, [{ ...at(lost, 1), ordinal: 5 }, at(others, 2)])).toBe(
      'forked ok',
    );
  });
});

describe('counters set by hand', () => {
  test('ids raised by XSETID or an explicit XADD lose nothing', async () => {
    await using topic = openTopic();
    const positions = await written(topic, 2);
    await topic.client.call('XSETID', topic.key, '99999999999999-5');
    expect(await verdicts(topic, positions)).toBe('ok ok ok');
    await topic.client.xadd(topic.key, '99999999999999-7', 'v', 'v3');
    await topic.append('v4');
    expect(await topic.values(at(positions, 0))).toEqual(['v1', 'v2', 'v3', 'v4']);
    expect(await topic.values(at(positions, 2))).toEqual(['v3', 'v4']);
  });

  test('a count raised by XSETID is told as a fork, never as a silent jump', async () => {
    await using topic = openTopic();
    const positions = await written(topic, 2);
    const { id } = at(positions, 2);
    await topic.client.call('XSETID', topic.key, id, 'ENTRIESADDED', 100);
    const [next] = await topic.append('v101');
    expect(next?.ordinal).toBe(101);
    expect(await topic.verdict(at(positions, 2))).toBe('forked');
    expect(await topic.values(at(positions, 1))).toEqual(['v2']);
  });
});

test('ids past the precision of a double are told apart', async () => {
  await using topic = openTopic();
  const { client, key } = topic;
  await client.xadd(key, '9007199254740993-18446744073709551613', 'v', 'a');
  await client.xadd(key, '9007199254740993-18446744073709551614', 'v', 'b');
  const page = await topic.log.page(topic.topic, 'earliest', 1);
  if (page.verdict !== 'ok') throw new Error(page.verdict);
  const { position } = at(page.commits, 0);
  expect(page.atTip).toBe(false);
  expect(await topic.values(position)).toEqual(['b']);
});

test('an id with leading zeros is the id', async () => {
  await using topic = openTopic();
  const positions = await written(topic, 2);
  const { id, ...rest } = at(positions, 1);
  expect(await topic.values({ ...rest, id: `000${id.replace('-', '-00')}` })).toEqual(['v2']);
});

test.each(['', 'x', '1', '1-1-1', '../1-0', '18446744073709551616-0', '('.repeat(10_000)])(
  'an id like %j is nowhere in the log',
  async (id) => {
    await using topic = openTopic();
    const positions = await written(topic, 3);
    await topic.client.xtrim(topic.key, 'MAXLEN', '=', 2);
    const odd = positions.map((position) => ({ ...position, id }));
    expect(await verdicts(topic, odd)).toBe('trimmed forked forked forked');
  },
);
