import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Position } from '@brokerfeed/core';
import { type JournalOptions, journalBroker, verify } from '@brokerfeed/journal';
import { plainRead, plainWrites, sizeOf } from './support/journal-plain.ts';

/*
 * The journal against plain files, in one run: `tsx bench/journal.ts [entries] [dir]`. Ratios are what counts; absolute
 * figures are those of one disk on one day.
 */

const ENTRIES = Number(process.argv[2] ?? 1_000_000);
const ROOT = mkdtempSync(join(process.argv[3] ?? tmpdir(), 'brokerfeed-bench-'));
const VALUE = JSON.stringify({
  order: 'b1c6e9',
  state: 'shipped',
  total: 1299,
  note: 'x'.repeat(120),
});
const SMALL_VALUE = JSON.stringify({ n: 12345, s: 'ok' });
const REPEATS = 3;
const APPEND_MS = 500;
const FILL_BATCH = 2_000;

try {
  await appends();
  await history();
} finally {
  rmSync(ROOT, { recursive: true, force: true });
}

async function appends(): Promise<void> {
  console.log(
    '\nappends, one entry each, against plain writes of the same bytes in the same groups',
  );
  // The first runs also compile the code.
  await produce('commit', 256);
  await produce('never', 256);
  for (const fsync of ['commit', 'never'] as const) {
    for (const producers of [1, 16, 256]) {
      const ratios: number[] = [];
      let rate = 0;
      let group = 0;
      const costs: number[] = [];
      for (let repeat = 0; repeat < REPEATS; repeat += 1) {
        const run = await produce(fsync, producers);
        rate = run.perSecond;
        group = run.perGroup;
        ratios.push(run.ratio);
        costs.push(run.cpuUs);
      }
      const [min, median, max] = spread(ratios);
      row(
        `fsync ${fsync}, ${producers} producers`,
        `${Math.round(rate)} appends/s, ${group.toFixed(1)} per group, ${spread(costs)[1].toFixed(1)} µs CPU each`,
        `of plain: ${percent(median)} (${percent(min)} to ${percent(max)})`,
      );
    }
  }
}

/** Appends from so many producers, each waiting for its own, then writes the same groups plainly. */
async function produce(
  fsync: 'commit' | 'never',
  producers: number,
): Promise<{ perSecond: number; perGroup: number; cpuUs: number; ratio: number }> {
  const dir = join(ROOT, `append-${crypto.randomUUID()}`);
  const groups: number[] = [];
  const meter = { count: () => {}, record: (_: string, value: number) => void groups.push(value) };
  const broker = journalBroker({ dir, fsync, segmentBytes: 1024 * 1024 * 1024, meter });
  await broker.log.append('orders', VALUE);
  groups.length = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  let count = 0;
  await Promise.all(
    Array.from({ length: producers }, async () => {
      while (performance.now() - start < APPEND_MS) {
        await broker.log.append('orders', VALUE);
        count += 1;
      }
    }),
  );
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  await broker.close();
  const bytes = sizeOf(segments(dir));
  const perEntry = Math.ceil(bytes / (count + 1));
  const buffers = groups.map((size) => Buffer.alloc(size * perEntry, 0x78));
  const plainMs = await plainWrites(join(dir, 'plain'), buffers, fsync === 'commit');
  rmSync(dir, { recursive: true });
  return {
    perSecond: (count * 1000) / ms,
    perGroup: count / groups.length,
    // Of all threads: those that wait for the disk too.
    cpuUs: (user + system) / count,
    ratio: plainMs / ms,
  };
}

async function history(): Promise<void> {
  console.log(`\na history of ${ENTRIES} small entries, commits of one, against one of 1000`);
  const large = await fill('large', ENTRIES);
  const small = await fill('small', 1000);
  const bytes = sizeOf(segments(large.dir));

  const scans: number[] = [];
  const reads: number[] = [];
  for (let repeat = 0; repeat < REPEATS; repeat += 1) {
    reads.push(plainRead(segments(large.dir)).ms);
    const start = performance.now();
    const report = verify(large.dir);
    scans.push(performance.now() - start);
    if (report.entries !== ENTRIES || report.findings.length > 0)
      throw new Error('verify disagrees');
  }
  const scan = spread(scans)[1];
  const read = spread(reads)[1];
  row('full scan (verify)', `${ms(scan)}, ${rate(bytes, scan)}`, `plain read ${rate(bytes, read)}`);

  const opens = { large: [] as number[], small: [] as number[] };
  const resumes = { large: [] as number[], small: [] as number[] };
  for (let repeat = 0; repeat < REPEATS * 2 + 1; repeat += 1) {
    for (const [name, filled] of [
      ['large', large],
      ['small', small],
    ] as const) {
      const start = performance.now();
      const broker = journalBroker({ dir: filled.dir });
      const opened = performance.now();
      const page = await broker.log.page('orders', filled.tenth, 10);
      const resumed = performance.now();
      if (page.verdict !== 'ok' || page.commits.length !== 10)
        throw new Error(`resume: ${page.verdict}`);
      await broker.close();
      // The first round also compiles the code.
      if (repeat === 0) continue;
      opens[name].push(opened - start);
      resumes[name].push(resumed - opened);
    }
  }
  const open = spread(opens.large);
  row(
    'cold open',
    `${ms(open[1])} (${ms(open[0])} to ${ms(open[2])})`,
    `1/${(scan / open[1]).toFixed(0)} of a full scan`,
  );
  const [resume, baseline] = [spread(resumes.large)[1], spread(resumes.small)[1]];
  row(
    'first resume, last 10 entries',
    ms(resume),
    `of 1000 entries: ${ms(baseline)}, ${(resume / baseline).toFixed(2)} times`,
  );
  await warmResumes(large, small);
  await killedOpen(scan);
}

/** Resumes again and again on an open journal. */
async function warmResumes(...filled: { dir: string; tenth: Position }[]): Promise<void> {
  const times: number[] = [];
  for (const { dir, tenth } of filled) {
    await using broker = journalBroker({ dir });
    for (let count = 0; count < 200; count += 1) await broker.log.page('orders', tenth, 10);
    const start = performance.now();
    for (let count = 0; count < 2000; count += 1) await broker.log.page('orders', tenth, 10);
    times.push((performance.now() - start) / 2000);
  }
  const [large = 0, small = 1] = times;
  row(
    'resume on an open journal',
    `${(large * 1000).toFixed(0)} µs`,
    `of 1000 entries: ${(small * 1000).toFixed(0)} µs, ${(large / small).toFixed(2)} times`,
  );
}

/** Opens a folder whose owner left no checkpoint of the end behind, as after SIGKILL. */
async function killedOpen(scan: number): Promise<void> {
  const { dir } = await fill('killed', ENTRIES, 'killed');
  const start = performance.now();
  const broker = journalBroker({ dir });
  const open = performance.now() - start;
  row('cold open after a kill', ms(open), `1/${(scan / open).toFixed(0)} of a full scan`);
  await broker.close();
}

/** Makes a history. A killed one is copied before it is closed. */
async function fill(
  name: string,
  count: number,
  end: 'closed' | 'killed' = 'closed',
): Promise<{ dir: string; tenth: Position }> {
  const dir = join(ROOT, name);
  const options: JournalOptions = { dir, fsync: 'never' };
  const broker = journalBroker(options);
  const start = performance.now();
  let tenth: Position | undefined;
  for (let done = 0; done < count; done += FILL_BATCH) {
    const batch = Math.min(FILL_BATCH, count - done);
    const positions = await Promise.all(
      Array.from({ length: batch }, () => broker.log.append('orders', SMALL_VALUE)),
    );
    tenth = positions.at(-11);
  }
  if (end === 'closed') {
    row(
      `fill ${name}`,
      `${Math.round((count * 1000) / (performance.now() - start))} appends/s`,
      '',
    );
    await broker.close();
    return { dir, tenth: tenth as Position };
  }
  const { cpSync } = await import('node:fs');
  const copy = `${dir}-copy`;
  cpSync(dir, copy, { recursive: true, filter: (from) => !from.endsWith('/lock') });
  await broker.close();
  return { dir: copy, tenth: tenth as Position };
}

function segments(dir: string): string[] {
  return readdirSync(join(dir, 'segments')).map((name) => join(dir, 'segments', name));
}

function spread(values: readonly number[]): [min: number, median: number, max: number] {
  const sorted = [...values].sort((a, b) => a - b);
  return [sorted[0] ?? 0, sorted[sorted.length >> 1] ?? 0, sorted.at(-1) ?? 0];
}

function row(...cells: readonly [string, string, string]): void {
  console.log(`  ${cells[0].padEnd(32)} ${cells[1].padEnd(58)} ${cells[2]}`);
}

function percent(part: number): string {
  return `${Math.round(part * 100)} %`;
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)} ms`;
}

function rate(bytes: number, inMs: number): string {
  return `${Math.round(bytes / 1000 / inMs)} MB/s`;
}
