import assert from 'node:assert/strict';
import type { Clock, Position } from '@brokerfeed/core';
import { Journal } from '../src/journal.ts';
import { brokerOn, type JournalBroker } from '../src/journal-broker.ts';
import { type JournalOptions, resolveJournalOptions } from '../src/options.ts';
import { type Crash, DiskModel, type DiskOp } from './disk-model.ts';
import { quickDisk, RecordedFs } from './recorded-fs.ts';

const DIR = '/journal';
export const TOPICS: readonly string[] = ['orders', 'audit', 'rooms'];

/** A clock whose time passes by hand. */
export class HandClock implements Clock {
  time = 1_733_011_200_000;
  #waiting = new Map<() => void, number>();

  now(): number {
    return this.time;
  }

  after(ms: number, callback: () => void): () => void {
    this.#waiting.set(callback, this.time + ms);
    return () => this.#waiting.delete(callback);
  }

  pass(ms: number): void {
    this.time += ms;
    for (const [callback, due] of [...this.#waiting]) {
      if (due > this.time) continue;
      this.#waiting.delete(callback);
      callback();
    }
  }
}

/** Opens the folder of a recorded file system. */
export function openOn(fs: RecordedFs, options: Omit<JournalOptions, 'dir'> = {}): JournalBroker {
  const resolved = resolveJournalOptions({ dir: DIR, clock: new HandClock(), ...options });
  const journal = new Journal(resolved, fs);
  return brokerOn(journal, resolved, () => journal.close());
}

/** What is known of one history: what was written, and how many calls had been made when somebody learned of it. */
export class History {
  readonly ops: DiskOp[];
  /** The values of each topic's commits, by ordinal − 1. */
  readonly written: Map<string, string[]> = new Map(TOPICS.map((topic) => [topic, []]));
  readonly acknowledged: { topic: string; position: Position; afterOps: number }[] = [];
  /** Positions that a reader was handed. */
  readonly seen: { topic: string; position: Position; afterOps: number }[] = [];

  constructor(ops: DiskOp[]) {
    this.ops = ops;
  }

  /** The files after the first `count` calls and some bytes of the next one. */
  filesAfter(count: number, crash: Crash, bytesOfNext = 0): Map<string, Buffer> {
    const disk = new DiskModel();
    for (const op of this.ops.slice(0, count)) disk.apply(op);
    const next = this.ops[count];
    if (bytesOfNext > 0 && next?.op === 'write') {
      disk.apply({ ...next, bytes: next.bytes.subarray(0, bytesOfNext) });
    }
    return withoutLock(disk.files(crash));
  }
}

/** The owner is dead, which the lock's own tests are about. */
export function withoutLock(files: Map<string, Buffer>): Map<string, Buffer> {
  return new Map([...files].filter(([path]) => !path.startsWith(`${DIR}/lock`)));
}

/** Writes a history: single appends, groups, commits that span topics, and readers that follow. */
export async function recordHistory(
  options: Omit<JournalOptions, 'dir'>,
  rounds = 6,
  producers = 0,
): Promise<History> {
  const fs = new RecordedFs();
  fs.beforeSync = quickDisk;
  const history = new History(fs.ops);
  const clock = new HandClock();
  const { log } = openOn(fs, { ...options, clock });
  const reading = new AbortController();
  for (const topic of TOPICS) {
    const sink = {
      live: () => {},
      commits: (commits: readonly { position: Position }[]) => {
        for (const { position } of commits) {
          history.seen.push({ topic, position, afterOps: fs.ops.length });
        }
      },
    };
    const { last } = await log.bounds(topic);
    void log.follow(topic, last, sink, reading.signal);
  }
  let count = 0;
  const value = (topic: string): string => {
    count += 1;
    const text = `${topic} ${count} ${'é'.repeat(count % 40)}`;
    history.written.get(topic)?.push(text);
    return text;
  };
  const note = (topic: string, position: Position): void => {
    history.acknowledged.push({ topic, position, afterOps: fs.ops.length });
  };
  const appendOne = async (topic: string): Promise<void> => {
    note(topic, await log.append(topic, value(topic)));
  };
  for (let round = 0; round < rounds; round += 1) {
    await appendOne('orders');
    await Promise.all([appendOne('orders'), appendOne('audit'), appendOne('orders')]);
    const both = ['rooms', 'audit'].map((topic) => ({ topic, value: value(topic) }));
    const { positions } = await log.appendAll(both);
    for (const [at, { topic }] of both.entries()) note(topic, positions[at] as Position);
    clock.pass(1000);
  }
  // Many at once, each going on by itself: large groups, one after another.
  const produce = async (): Promise<void> => {
    for (let round = 0; round < 4; round += 1) await appendOne('orders');
  };
  await Promise.all(Array.from({ length: producers }, produce));
  // Nothing is closed: every history ends in a crash. Copied, since the dead process must not go on writing to it.
  reading.abort();
  return Object.assign(new History([...fs.ops]), {
    written: history.written,
    acknowledged: history.acknowledged,
    seen: history.seen,
  });
}

/** What may be missing after a crash. */
export type Promised = 'all acknowledged' | 'a prefix';

/**
 * Opens what a crash left and compares: what was acknowledged is there (where that was promised), what is there is a
 * prefix of what was written, and every position that anybody held resumes exactly or is refused. Then goes on writing,
 * and asks again. With `assert`: a run asks so often that vitest's `expect` would take half of its time.
 */
export async function checkRecovered(
  history: History,
  files: Map<string, Buffer>,
  afterOps: number,
  promised: Promised,
  options: Omit<JournalOptions, 'dir'> = {},
): Promise<RecordedFs> {
  const fs = new RecordedFs(files);
  const broker = openOn(fs, options);
  const { log } = broker;
  const held = [...history.acknowledged, ...history.seen].filter(
    (known) => known.afterOps <= afterOps,
  );
  for (let round = 0; round < 2; round += 1) {
    for (const topic of TOPICS) {
      const written = history.written.get(topic) ?? [];
      const { last, first } = await log.bounds(topic);
      assert.equal(first.ordinal, 0);
      const page = await log.page(topic, 'earliest', 10_000);
      if (page.verdict !== 'ok') assert.fail(page.verdict);
      const values = page.commits.map((commit) => commit.entries[0]?.value);
      const known = values.slice(0, last.ordinal - round);
      assert.deepEqual(known, written.slice(0, known.length));
      for (const { position } of held.filter((one) => one.topic === topic)) {
        const resumed = await log.page(topic, position, 1);
        if (promised === 'all acknowledged') assert.equal(resumed.verdict, 'ok');
        if (resumed.verdict !== 'ok') assert.equal(resumed.verdict, 'forked');
        else if (position.ordinal < known.length) {
          assert.equal(resumed.commits[0]?.entries[0]?.value, written[position.ordinal]);
        }
      }
      if (round === 0) await log.append(topic, 'after the crash');
    }
  }
  await broker.close();
  return fs;
}
