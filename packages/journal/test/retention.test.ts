import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BrokerLog, Commit, Position } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { type JournalOptions, journalBroker, verify } from '../src/index.ts';
import { HandClock, openOn, withoutLock } from './crash-history.ts';
import { DiskModel } from './disk-model.ts';
import { temporaryFolder } from './harness.ts';
import { RecordedFs } from './recorded-fs.ts';
import { eventLog } from './support-logger.ts';

const SMALL = { segmentBytes: 4096, fsync: 'never' } as const;
const VALUE = 'x'.repeat(200);

async function fill(log: BrokerLog, topic: string, count: number): Promise<Position[]> {
  const positions: Position[] = [];
  for (let at = 0; at < count; at += 1) positions.push(await log.append(topic, `${at} ${VALUE}`));
  return positions;
}

function names(dir: string, folder: string): string[] {
  return readdirSync(join(dir, folder))
    .filter((name) => name.endsWith('.log'))
    .sort();
}

test('whole segments go when all hold too many bytes, and a reader behind them is told', async () => {
  using folder = temporaryFolder();
  await using broker = journalBroker({
    dir: folder.path,
    ...SMALL,
    retention: { maxBytes: 20_000 },
  });
  const { log } = broker;
  const positions = await fill(log, 'a', 200);
  expect(names(folder.path, 'segments').length).toBeLessThanOrEqual(6);
  const { first, last } = await log.bounds('a');
  expect(first.ordinal).toBeGreaterThan(100);
  expect(last).toEqual(positions.at(-1));
  const verdict = async (at: number) => (await log.page('a', positions[at] as Position, 1)).verdict;
  expect(await verdict(0)).toBe('trimmed');
  expect(await verdict(first.ordinal - 2)).toBe('trimmed');
  expect(await verdict(first.ordinal - 1)).toBe('ok');
  expect(first).toEqual(positions[first.ordinal - 1]);
});

test('at least the newest maxEntries stay', async () => {
  using folder = temporaryFolder();
  await using broker = journalBroker({ dir: folder.path, ...SMALL, retention: { maxEntries: 50 } });
  await fill(broker.log, 'a', 200);
  const { first, last } = await broker.log.bounds('a');
  expect(last.ordinal - first.ordinal).toBeGreaterThanOrEqual(50);
  expect(last.ordinal - first.ordinal).toBeLessThan(100);
});

test('segments whose newest commit is too old go', async () => {
  using folder = temporaryFolder();
  const clock = new HandClock();
  const options = { dir: folder.path, ...SMALL, clock, retention: { maxAgeMs: 60_000 } };
  await using broker = journalBroker(options);
  await fill(broker.log, 'a', 50);
  clock.pass(61_000);
  await fill(broker.log, 'a', 2);
  const { first } = await broker.log.bounds('a');
  expect(first.ordinal).toBe(50);
});

test('a segment that retention is done with is moved to the archive, whole', async () => {
  using folder = temporaryFolder();
  const dir = join(folder.path, 'journal');
  const archiveDir = join(folder.path, 'archive', 'segments');
  await using broker = journalBroker({
    dir,
    ...SMALL,
    archiveDir,
    retention: { maxBytes: 20_000 },
  });
  await fill(broker.log, 'a', 200);
  await broker.close();
  const kept = names(dir, 'segments');
  const archived = names(folder.path, 'archive/segments');
  expect(archived.length).toBeGreaterThan(5);
  expect(archived.at(-1)?.localeCompare(kept[0] as string)).toBe(-1);
  // Archive and journal together are the whole history.
  const { renameSync, rmSync } = await import('node:fs');
  for (const name of kept) renameSync(join(dir, 'segments', name), join(archiveDir, name));
  rmSync(join(dir, 'segments'), { recursive: true });
  const whole = verify(join(folder.path, 'archive'));
  expect(whole.findings.filter(({ kind }) => kind === 'damage')).toEqual([]);
  expect(whole.entries).toBe(200);
});

test('a live read that retention overtakes ends with "trimmed", without a hole', async () => {
  using folder = temporaryFolder();
  await using broker = journalBroker({
    dir: folder.path,
    ...SMALL,
    retention: { maxBytes: 20_000 },
  });
  const { log } = broker;
  const { last } = await log.bounds('a');
  await fill(log, 'a', 60);
  const start = await log.bounds('a');
  const seen: Commit[] = [];
  const from = start.first;
  let writing: Promise<unknown> | undefined;
  const sink = {
    live: () => {
      // The read stands, and has read nothing yet: everything before the tip goes.
      writing = fill(log, 'a', 400);
    },
    commits: (commits: readonly Commit[]) => void seen.push(...commits),
  };
  const reading = new AbortController();
  const followed = log.follow('a', from, sink, reading.signal);
  await Promise.race([followed, new Promise((resolve) => setImmediate(resolve))]);
  await writing;
  reading.abort();
  const loss = await followed;
  expect([undefined, 'trimmed']).toContain(loss);
  expect(seen.map(({ position }) => position.ordinal)).toEqual(
    seen.map((_, at) => from.ordinal + 1 + at),
  );
  expect((await log.page('a', last, 1)).verdict).toBe('trimmed');
});

interface HeldRead {
  /** Resolves once somebody reads. */
  readonly reached: Promise<void>;
  release(): void;
}

/** Lets the next read wait until it is released. */
function holdRead(fs: RecordedFs): HeldRead {
  let go = (): void => {};
  const reached = new Promise<void>((resolve) => {
    fs.beforeRead = () => {
      resolve();
      return new Promise((released) => {
        go = released;
      });
    };
  });
  return {
    reached,
    release() {
      fs.beforeRead = async () => {};
      go();
    },
  };
}

test('a segment that is being read goes when its reader is done, and the page is whole', async () => {
  const fs = new RecordedFs();
  await using broker = openOn(fs, { ...SMALL, retention: { maxBytes: 20_000 } });
  const { log } = broker;
  await fill(log, 'a', 60);
  const [oldest] = fs.list('/journal/segments');
  const held = holdRead(fs);
  const reading = log.page('a', 'earliest', 5);
  await held.reached;
  await fill(log, 'a', 200);
  expect(fs.list('/journal/segments')[0]).toBe(oldest);
  held.release();
  const page = await reading;
  expect(page.verdict === 'ok' && page.commits.map(({ position }) => position.ordinal)).toEqual(
    [1, 2, 3, 4, 5].map((count) => page.bounds.first.ordinal + count),
  );
  expect(fs.list('/journal/segments')[0]).not.toBe(oldest);
});

test.each([false, true])(
  'a quiet topic keeps its tip when its last segment goes, reopened with caches dropped: %s',
  async (dropped) => {
    using folder = temporaryFolder();
    const options: JournalOptions = { dir: folder.path, ...SMALL, retention: { maxBytes: 20_000 } };
    let tip: Position;
    {
      await using broker = journalBroker(options);
      tip = await broker.log.append('quiet', 'once');
      // Twice as much as is kept: the record that carries the topic on is carried on itself.
      await fill(broker.log, 'loud', 400);
      expect((await broker.log.page('quiet', tip, 1)).verdict).toBe('ok');
    }
    if (dropped) {
      const { rmSync } = await import('node:fs');
      for (const name of ['checkpoints', 'indexes'])
        rmSync(join(folder.path, name), { recursive: true });
    }
    await using broker = journalBroker(options);
    expect(await broker.log.bounds('quiet')).toEqual({ first: tip, last: tip });
    const next = await broker.log.append('quiet', 'again');
    expect([next.epoch, next.ordinal]).toEqual([tip.epoch, 2]);
    const page = await broker.log.page('quiet', tip, 10);
    expect(page.verdict === 'ok' && page.commits.map(({ position }) => position)).toEqual([next]);
  },
);

test('a journal is in order for verify whenever segments have gone, with a topic of which nothing is left', async () => {
  const fs = new RecordedFs();
  const options = { ...SMALL, retention: { maxBytes: 20_000 } };
  await using broker = openOn(fs, options);
  await broker.log.append('quiet', 'once');
  for (let at = 0; at < 200; at += 1) {
    await broker.log.append('loud', VALUE);
    expect(verify('/journal', fs).findings).toEqual([]);
  }
  expect((await broker.log.bounds('quiet')).first.ordinal).toBe(1);
});

test('a topic that was dropped never gets an epoch again that it had', async () => {
  using folder = temporaryFolder();
  const options: JournalOptions = { dir: folder.path, ...SMALL, retention: { maxBytes: 20_000 } };
  const epochs = new Set<string>();
  for (let round = 0; round < 4; round += 1) {
    await using broker = journalBroker(options);
    epochs.add((await broker.log.append('a', 'x')).epoch);
    await broker.log.drop('a');
    epochs.add((await broker.log.bounds('a')).last.epoch);
    // The drop itself is forgotten with its segment.
    await fill(broker.log, 'b', 200);
  }
  expect(epochs.size).toBe(8 - 3);
});

test('segments go in their order: a process that ends while the oldest is being read leaves no hole', async () => {
  const fs = new RecordedFs();
  await using broker = openOn(fs, SMALL);
  const { log } = broker;
  await fill(log, 'a', 60);
  const [oldest] = fs.list('/journal/segments');
  const held = holdRead(fs);
  const reading = log.page('a', 'earliest', 5);
  await held.reached;
  const last = await log.append('a', VALUE, { retention: { maxEntries: 1 } });
  for (let at = 0; at < 40; at += 1) await log.append('b', VALUE, { retention: { maxEntries: 1 } });
  const left = new DiskModel();
  for (const op of fs.ops) left.apply(op);
  // What is a cache may be missing.
  const files = [...withoutLock(left.files('killed'))].filter(([path]) => path.endsWith('.log'));
  await using again = openOn(new RecordedFs(new Map(files)), SMALL);
  expect((await again.log.bounds('a')).last).toEqual(last);
  expect(fs.list('/journal/segments')[0]).toBe(oldest);
  held.release();
  expect(await reading).toMatchObject({ verdict: 'ok' });
  expect(fs.list('/journal/segments')).not.toContain(oldest);
});

test('an archive that cannot be written to hinders neither appends nor an opening, and gets all once it can', async () => {
  using folder = temporaryFolder();
  const archive = join(folder.path, 'archive');
  const { logger, events } = eventLog();
  const options = {
    dir: join(folder.path, 'journal'),
    ...SMALL,
    archiveDir: join(archive, 'segments'),
    retention: { maxBytes: 20_000 },
    logger,
  };
  writeFileSync(archive, 'no folder');
  {
    await using broker = journalBroker(options);
    await fill(broker.log, 'a', 100);
  }
  expect(events).toContain('journal.segment.not-removed');
  await using broker = journalBroker(options);
  await fill(broker.log, 'a', 20);
  const first = names(options.dir, 'segments')[0];
  rmSync(archive);
  await fill(broker.log, 'a', 20);
  const whole = [...names(folder.path, 'archive/segments'), ...names(options.dir, 'segments')];
  expect(whole).toEqual([...new Set(whole)].sort());
  expect(whole[0]).toBe(first);
  expect(names(options.dir, 'segments').length).toBeLessThanOrEqual(6);
});
