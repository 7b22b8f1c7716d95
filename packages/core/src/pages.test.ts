import { expect, test } from 'vitest';
import { settled } from '../test/support/feed-rig.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import { OUTAGE, ScriptedLog } from '../test/support/scripted-log.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';
import { Pages, type SlotPage } from './pages.ts';
import type { Position } from './position.ts';

const TOPIC = 'orders';
const KEEP_MS = 2_000;
const PAGE_COMMITS = 1024;

class Rig {
  readonly store = memoryStore();
  readonly clock = new ManualClock();
  readonly log = new ScriptedLog(memoryBroker({ store: this.store }).log);
  readonly pages = new Pages(this.log, { clock: this.clock, delaysMs: [10, 20] });

  async appendEach(...values: string[]): Promise<Position[]> {
    const positions: Position[] = [];
    for (const value of values) positions.push(await this.log.append(TOPIC, value));
    return positions;
  }

  async start(): Promise<Position> {
    return (await this.log.bounds(TOPIC)).first;
  }
}

function valuesOf(page: SlotPage): string[] {
  if (page.verdict !== 'ok') throw new Error(`the page was refused: ${page.verdict}`);
  return page.commits.flatMap((commit) => commit.entries.map((entry) => entry.value));
}

function endOf(page: SlotPage): Position {
  const last = page.verdict === 'ok' ? page.commits.at(-1) : undefined;
  if (last === undefined) throw new Error('the page holds nothing');
  return last.commit.position;
}

test('readers of one place share a read and its entries', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach('a', 'b');
  const [one, two] = await Promise.all([
    rig.pages.read(TOPIC, start),
    rig.pages.read(TOPIC, { ...start }),
  ]);
  expect(valuesOf(one)).toEqual(['a', 'b']);
  expect(two).toBe(one);
  expect(await rig.pages.read(TOPIC, start)).toBe(one);
  expect(rig.log.pages).toBe(1);
});

test('a page that nobody asks for again is kept for a moment', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach('a');
  await rig.pages.read(TOPIC, start);
  await rig.appendEach('b');
  rig.clock.advance(KEEP_MS);
  expect(valuesOf(await rig.pages.read(TOPIC, start))).toEqual(['a', 'b']);
  expect(rig.log.pages).toBe(2);
});

test('a page that is asked for again is kept on, but not for ever', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach('a');
  await rig.pages.read(TOPIC, start);
  await rig.appendEach('b');
  for (let times = 0; times < 5; times += 1) {
    // An older page is a shorter one, never a wrong one.
    expect(valuesOf(await rig.pages.read(TOPIC, start))).toEqual(['a']);
    rig.clock.advance(KEEP_MS);
  }
  expect(valuesOf(await rig.pages.read(TOPIC, start))).toEqual(['a', 'b']);
  expect(rig.log.pages).toBe(2);
});

test.each<[string, (rig: Rig, start: Position) => Promise<Position | 'earliest'>]>([
  ['an empty page', async (rig) => (await rig.log.bounds(TOPIC)).last],
  ['a refusal', async (_, start) => ({ ...start, epoch: 'AAAAAAAAAAAA' })],
  ['the oldest page', async () => 'earliest'],
])('%s is never kept', async (_, where) => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach('a', 'b');
  const from = await where(rig, start);
  await rig.pages.read(TOPIC, from);
  await rig.pages.read(TOPIC, from);
  expect(rig.log.pages).toBe(2);
});

test('a read from the oldest is not joined to one that was asked before a trim', async () => {
  const rig = new Rig();
  await rig.start();
  await rig.appendEach('a', 'b');
  await Promise.all([rig.pages.read(TOPIC, 'earliest'), rig.pages.read(TOPIC, 'earliest')]);
  expect(rig.log.pages).toBe(2);
});

test('readers share an empty read while it is under way', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await Promise.all([rig.pages.read(TOPIC, start), rig.pages.read(TOPIC, start)]);
  expect(rig.log.pages).toBe(1);
});

test('topics and places are told apart, whatever the names', async () => {
  const rig = new Rig();
  const other = `${TOPIC}\nearliest`;
  await rig.log.append(TOPIC, 'a');
  await rig.log.append(other, 'b');
  const reads = await Promise.all([
    rig.pages.read(TOPIC, 'earliest'),
    rig.pages.read(other, 'earliest'),
    rig.pages.read(TOPIC, await rig.start()),
    rig.pages.read(other, (await rig.log.bounds(other)).first),
  ]);
  expect(reads.map(valuesOf)).toEqual([['a'], ['b'], ['a'], ['b']]);
});

test('an id that differs alone is another place', async () => {
  const rig = new Rig();
  const [first] = await rig.appendEach('a', 'b');
  const forked = { ...(first as Position), id: '99' };
  expect((await rig.pages.read(TOPIC, first as Position)).verdict).toBe('ok');
  expect((await rig.pages.read(TOPIC, forked)).verdict).toBe('forked');
});

test('the page after one that is read is read ahead, once for all', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach(...Array.from({ length: PAGE_COMMITS + 1 }, (_, n) => `v${n}`));
  const pages = await Promise.all([rig.pages.read(TOPIC, start), rig.pages.read(TOPIC, start)]);
  await settled();
  expect(rig.log.pages).toBe(2);
  const next = await rig.pages.read(TOPIC, endOf(pages[0]));
  expect(valuesOf(next)).toEqual([`v${PAGE_COMMITS}`]);
  await settled();
  // That one ends at the tip: nothing follows.
  expect(rig.log.pages).toBe(2);
});

test('no further than one page is read ahead of who reads', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach(...Array.from({ length: 4 * PAGE_COMMITS }, (_, n) => `v${n}`));
  await rig.pages.read(TOPIC, start);
  await settled();
  expect(rig.log.pages).toBe(2);
});

test('nothing is read ahead where many pages are kept', async () => {
  const rig = new Rig();
  const start = await rig.start();
  const positions = await rig.appendEach(
    ...Array.from({ length: PAGE_COMMITS + 20 }, (_, n) => `v${n}`),
  );
  // From the end on, so that each reaches the tip: nothing is read ahead of them.
  for (const from of positions.slice(-10, -1)) await rig.pages.read(TOPIC, from);
  const before = rig.log.pages;
  await rig.pages.read(TOPIC, start);
  await settled();
  expect(rig.log.pages).toBe(before + 1);
});

test('a page that cannot be read ahead is read when it is needed', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach(...Array.from({ length: PAGE_COMMITS + 1 }, (_, n) => `v${n}`));
  rig.log.beforePage = (call) => {
    if (call > 1) throw OUTAGE;
  };
  const page = await rig.pages.read(TOPIC, start);
  for (const ms of [10, 20]) {
    await rig.clock.untilWait(ms);
    rig.clock.advance(ms);
  }
  await settled();
  rig.log.beforePage = () => {};
  expect(valuesOf(await rig.pages.read(TOPIC, endOf(page)))).toEqual([`v${PAGE_COMMITS}`]);
});

test('no more pages are kept than a bound', async () => {
  const rig = new Rig();
  const start = await rig.start();
  const positions = await rig.appendEach(...Array.from({ length: 200 }, (_, n) => `v${n}`));
  const all = [start, ...positions.slice(0, -1)];
  for (const from of all) await rig.pages.read(TOPIC, from);
  expect(rig.log.pages).toBe(200);
  for (const from of [...all].reverse()) await rig.pages.read(TOPIC, from);
  // The newest 16 are there, the others are read again.
  expect(rig.log.pages).toBe(200 + 200 - 16);
  // Nor does a timer hold one that has gone.
  expect(rig.clock.waits.length).toBe(16);
});

test('a read that fails is tried again, then rejects all who share it, and is forgotten', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach('a');
  rig.log.beforePage = () => {
    throw OUTAGE;
  };
  const reads = [rig.pages.read(TOPIC, start), rig.pages.read(TOPIC, start)];
  const failed = Promise.allSettled(reads);
  for (const ms of [10, 20]) {
    await rig.clock.untilWait(ms);
    rig.clock.advance(ms);
  }
  for (const read of await failed) expect(read).toEqual({ status: 'rejected', reason: OUTAGE });
  expect(rig.log.pages).toBe(3);
  rig.log.beforePage = () => {};
  expect(valuesOf(await rig.pages.read(TOPIC, start))).toEqual(['a']);
});

test('a read mends within its tries', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach('a');
  rig.log.beforePage = (call) => {
    if (call === 1) throw new TypeError('no broker error');
  };
  const read = rig.pages.read(TOPIC, start);
  await rig.clock.untilWait(10);
  rig.clock.advance(10);
  expect(valuesOf(await read)).toEqual(['a']);
});

test('a page that is kept leaves no timer behind it', async () => {
  const rig = new Rig();
  const start = await rig.start();
  await rig.appendEach('a');
  await rig.pages.read(TOPIC, start);
  await settled();
  rig.clock.advance(KEEP_MS);
  expect(rig.clock.waits).toEqual([]);
});
