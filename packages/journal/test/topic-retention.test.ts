import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BrokerLog, Commit, Position } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { type JournalBroker, journalBroker, verify } from '../src/index.ts';
import { HandClock, History, openOn } from './crash-history.ts';
import { CRASHES } from './disk-model.ts';
import { temporaryFolder } from './harness.ts';
import { quickDisk, RecordedFs, systemError } from './recorded-fs.ts';

// What an append's own retention is in a journal. The laws that all brokers share are in @brokerfeed/conformance.
const SMALL = { segmentBytes: 4096, fsync: 'never' } as const;
const VALUE = 'x'.repeat(200);
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const newest = (maxEntries: number) => ({ retention: { maxEntries } });

async function firstOf(log: BrokerLog, topic: string): Promise<number> {
  return (await log.bounds(topic)).first.ordinal;
}

async function fill(log: BrokerLog, topic: string, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) await log.append(topic, `${at} ${VALUE}`);
}

function segments(dir: string): number {
  return readdirSync(join(dir, 'segments')).length;
}

test.each([false, true])(
  'what is gone is gone after the folder was opened anew, with caches dropped: %s',
  async (dropped) => {
    using folder = temporaryFolder();
    const options = { dir: folder.path, ...SMALL };
    let bounds: unknown;
    let positions: Position[];
    {
      await using broker = journalBroker(options);
      positions = [];
      for (let at = 0; at < 100; at += 1) {
        positions.push(await broker.log.append('a', `${at} ${VALUE}`, newest(7)));
        await broker.log.append('b', VALUE);
      }
      bounds = await broker.log.bounds('a');
      expect(bounds).toEqual({ first: positions[92], last: positions[99] });
    }
    if (dropped)
      for (const name of ['checkpoints', 'indexes'])
        rmSync(join(folder.path, name), { recursive: true });
    await using broker = journalBroker(options);
    expect(await broker.log.bounds('a')).toEqual(bounds);
    expect((await broker.log.page('a', positions[91] as Position, 1)).verdict).toBe('trimmed');
    expect((await broker.log.page('a', positions[92] as Position, 1)).verdict).toBe('ok');
    expect(await firstOf(broker.log, 'b')).toBe(0);
    await broker.close();
    expect(verify(folder.path).findings.filter(({ kind }) => kind === 'damage')).toEqual([]);
  },
);

test('an age is kept to a sixteenth, and nothing younger goes, also when the folder was opened anew', async () => {
  using folder = temporaryFolder();
  const clock = new HandClock();
  const writtenAt: number[] = [];
  const append = async ({ log }: JournalBroker): Promise<number> => {
    clock.pass(MINUTE_MS);
    writtenAt.push(clock.now());
    await log.append('a', VALUE, { retention: { maxAgeMs: HOUR_MS } });
    // Whatever went was older; answers the age of the oldest that is left.
    const first = await firstOf(log, 'a');
    if (first > 0) expect(clock.now() - (writtenAt[first - 1] as number)).toBeGreaterThan(HOUR_MS);
    return clock.now() - (writtenAt[first] as number);
  };
  const options = { dir: folder.path, fsync: 'never', clock } as const;
  {
    await using broker = journalBroker(options);
    for (let count = 0; count < 200; count += 1) {
      expect(await append(broker)).toBeLessThanOrEqual(HOUR_MS + HOUR_MS / 16 + MINUTE_MS);
    }
  }
  await using broker = journalBroker(options);
  const left = await firstOf(broker.log, 'a');
  // How old each was is known no more: they go with the segment, once its end is old.
  for (let count = 0; count < 60; count += 1) await append(broker);
  expect(await firstOf(broker.log, 'a')).toBe(left);
  for (let count = 0; count < 20; count += 1) await append(broker);
  expect(await append(broker)).toBeLessThanOrEqual(HOUR_MS + HOUR_MS / 16 + MINUTE_MS);
});

test('a segment goes when nothing of it is left, and not before', async () => {
  using folder = temporaryFolder();
  await using broker = journalBroker({ dir: folder.path, ...SMALL });
  const { log } = broker;
  await log.append('idle', 'once', newest(1));
  for (let at = 0; at < 80; at += 1) await log.append('a', VALUE, newest(3));
  const pinned = segments(folder.path);
  expect(pinned).toBeGreaterThan(5);
  const idle = await log.append('idle', 'twice', newest(1));
  for (let at = 0; at < 30; at += 1) await log.append('a', VALUE, newest(3));
  expect(segments(folder.path)).toBeLessThan(pinned);
  await log.trim('idle', 0);
  for (let at = 0; at < 30; at += 1) await log.append('a', VALUE, newest(3));
  expect(segments(folder.path)).toBeLessThanOrEqual(2);
  expect(await log.bounds('idle')).toEqual({ first: idle, last: idle });
  await broker.close();
  expect(verify(folder.path).findings.filter(({ kind }) => kind === 'damage')).toEqual([]);
});

test('what is known of a topic does not grow with segments that another one holds', async () => {
  const fs = new RecordedFs();
  const broker = openOn(fs, SMALL);
  const { log } = broker;
  await log.append('idle', 'once');
  for (let at = 0; at < 80; at += 1) await log.append('a', VALUE, newest(3));
  expect(fs.list('/journal/segments').length).toBeGreaterThan(5);
  await broker.close();
  const newestOf = fs.list('/journal/checkpoints').at(-1);
  const line = fs.readFile(`/journal/checkpoints/${newestOf}`)?.toString() ?? '';
  const { topics } = JSON.parse(line.slice(line.indexOf(' '))) as { topics: unknown[][] };
  const runs = topics.find(([name]) => name === 'a')?.[6] as number[];
  expect(runs.length / 2).toBeLessThanOrEqual(2);
});

test('the retention of the journal goes on beside it', async () => {
  using folder = temporaryFolder();
  const options = { dir: folder.path, ...SMALL, retention: { maxBytes: 20_000 } };
  await using broker = journalBroker(options);
  for (let at = 0; at < 200; at += 1) await broker.log.append('a', VALUE, newest(150));
  expect(await firstOf(broker.log, 'a')).toBeGreaterThan(100);
});

test('a live read of a topic that was carried on is given commits that follow, though they left nothing before them', async () => {
  using folder = temporaryFolder();
  const options = { dir: folder.path, ...SMALL, retention: { maxBytes: 20_000 } };
  {
    await using broker = journalBroker(options);
    await broker.log.append('quiet', 'once');
  }
  await using broker = journalBroker(options);
  const { log } = broker;
  await fill(log, 'loud', 200);
  const { first, last: tip } = await log.bounds('quiet');
  expect([first, tip.ordinal]).toEqual([tip, 1]);
  const seen: Commit[] = [];
  const reading = new AbortController();
  let stands = (): void => {};
  const standing = new Promise<void>((resolve) => {
    stands = resolve;
  });
  const sink = {
    live: () => stands(),
    commits: (got: readonly Commit[]) => void seen.push(...got),
  };
  const followed = log.follow('quiet', tip, sink, reading.signal);
  await standing;
  // The tip is read once more before the read joins it; then both are one write.
  await log.page('quiet', tip, 0);
  const written = await Promise.all(
    ['a', 'b'].map((value) => log.append('quiet', value, newest(1))),
  );
  expect(await firstOf(log, 'quiet')).toBe(2);
  reading.abort();
  await followed;
  expect(seen.map(({ previous, position }) => [previous, position])).toEqual([
    [tip, written[0]],
    [written[0], written[1]],
  ]);
});

test('an append that fails removes nothing, neither by count nor by age', async () => {
  const fs = new RecordedFs();
  const clock = new HandClock();
  await using broker = openOn(fs, { clock });
  const { log } = broker;
  for (const value of ['a', 'b', 'c']) await log.append('t', value);
  clock.pass(HOUR_MS);
  fs.faults.write = () => {
    throw systemError('ENOSPC');
  };
  const retention = { maxEntries: 1, maxAgeMs: 1 };
  for (let count = 0; count < 3; count += 1) {
    await expect(log.append('t', 'lost', { retention })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    });
    clock.pass(MINUTE_MS);
  }
  expect(await firstOf(log, 't')).toBe(0);
  delete fs.faults.write;
  await log.append('t', 'd', { retention: { maxEntries: 2 } });
  expect(await firstOf(log, 't')).toBe(2);
  // Not told apart from those that failed before it, this one would be old.
  await log.append('t', 'e', { retention: { maxAgeMs: MINUTE_MS } });
  expect(await firstOf(log, 't')).toBe(3);
});

test.each(CRASHES)(
  'a crash at every operation leaves what the last whole append left: %s',
  async (crash) => {
    const options = { segmentBytes: 4096 };
    const large = VALUE.repeat(7);
    const fs = new RecordedFs();
    fs.beforeSync = quickDisk;
    const acknowledged: { readonly position: Position; readonly afterOps: number }[] = [];
    const { log } = openOn(fs, options);
    for (let at = 0; at < 9; at += 1) {
      const position = await log.append('a', `${at} ${large}`, newest(2));
      acknowledged.push({ position, afterOps: fs.ops.length });
    }
    const history = new History([...fs.ops]);
    expect(history.ops.filter(({ op }) => op === 'unlink').length).toBeGreaterThan(0);
    for (let cut = 0; cut <= history.ops.length; cut += 1) {
      await using again = openOn(new RecordedFs(history.filesAfter(cut, crash)), options);
      const page = await again.log.page('a', 'earliest', 100);
      if (page.verdict !== 'ok') return expect.fail(page.verdict);
      const { first, last } = page.bounds;
      expect(first.ordinal).toBe(Math.max(0, last.ordinal - 2));
      expect(page.commits.map(({ entries }) => entries[0]?.value)).toEqual(
        page.commits.map((_, at) => `${first.ordinal + at} ${large}`),
      );
      const known = acknowledged.filter(({ afterOps }) => afterOps <= cut);
      expect(last.ordinal).toBeGreaterThanOrEqual(known.length);
      for (const { position } of known) {
        const { verdict } = await again.log.page('a', position, 0);
        expect(verdict).toBe(position.ordinal < first.ordinal ? 'trimmed' : 'ok');
      }
    }
  },
);

test.each(CRASHES)(
  'an idempotency key is known when nothing is left of its commit nor of the segments before, after a crash at every operation: %s',
  async (crash) => {
    const options = { segmentBytes: 4096 };
    const fs = new RecordedFs();
    fs.beforeSync = quickDisk;
    const { log } = openOn(fs, options);
    const once = { idempotencyKey: 'once' };
    const position = await log.append('a', 'once', once);
    const from = fs.ops.length;
    // Two fill a segment; the first in the next leaves nothing of those before.
    for (let at = 0; at < 5; at += 1) await log.append('a', VALUE.repeat(11), newest(1));
    // And then nothing goes for a while.
    for (let at = 0; at < 7; at += 1) await log.append('a', VALUE.repeat(11));
    const history = new History([...fs.ops]);
    expect(history.ops.filter(({ op }) => op === 'unlink').length).toBeGreaterThan(0);
    for (let cut = from; cut <= history.ops.length; cut += 1) {
      await using again = openOn(new RecordedFs(history.filesAfter(cut, crash)), options);
      expect(await again.log.append('a', 'once', once)).toEqual(position);
    }
  },
);
