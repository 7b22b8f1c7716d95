import { announce, watch } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';

/*
 * What an announcement costs where nobody watches, against a bare call of a function: `tsx bench/announce.ts [calls]`.
 * Ratios are what counts; each time is the least of several rounds, to which others on the machine can only add.
 */

const CALLS = Number(process.argv[2] ?? 2_000_000);
const ROUNDS = 25;
const TOPIC = 'presence';

const broker = memoryBroker();
const state = { user: 'ada', x: 12, y: 34, note: 'x'.repeat(100) };
let sink = 0;

function bare(topic: string, value: () => string): void {
  // Something that is not optimised away, and that the value's function is passed to.
  if (topic === 'nobody') sink += value().length;
}

const encode = (): string => JSON.stringify(state);

/** Nanoseconds of one call. */
function timed(calls: number, call: () => void): number {
  const start = process.hrtime.bigint();
  for (let count = 0; count < calls; count += 1) call();
  return Number(process.hrtime.bigint() - start) / calls;
}

/** Bytes of the heap that one call leaves to be collected. */
function allocated(calls: number, call: () => void): number {
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  for (let count = 0; count < calls; count += 1) call();
  return (process.memoryUsage().heapUsed - before) / calls;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number;
}

function row(name: string, calls: number, call: () => void, base?: number): number {
  timed(Math.min(calls, 100_000), call);
  const ns = Math.min(...Array.from({ length: ROUNDS }, () => timed(calls, call)));
  const bytes = median(Array.from({ length: 3 }, () => allocated(Math.min(calls, 20_000), call)));
  const ratio = base === undefined ? '' : `${(ns / base).toFixed(1)} x bare`;
  console.log(
    `${name.padEnd(52)} ${ns.toFixed(1).padStart(8)} ns ${bytes.toFixed(1).padStart(7)} B  ${ratio}`,
  );
  return ns;
}

// First, so that every row calls through a place that has seen many functions: the first would be inlined otherwise.
const kinds = [() => {}, () => void encode(), () => bare(TOPIC, encode), () => bare('', encode)];
for (const call of [...kinds, () => announce(broker, TOPIC, encode)]) timed(100_000, call);

const base = row('a bare call', CALLS, () => bare(TOPIC, encode));
row('an announcement that nobody hears', CALLS, () => announce(broker, TOPIC, encode), base);

const elsewhere = await watch(broker, 'another topic');
row('... while another topic is watched', CALLS, () => announce(broker, TOPIC, encode), base);
elsewhere.close();

const few = CALLS / 20;
row(
  'its encoding alone',
  few,
  () => {
    sink += encode().length;
  },
  base,
);
for (const watchers of [1, 10, 100]) {
  const watches = await Promise.all(
    Array.from({ length: watchers }, () => watch(broker, TOPIC, { only: 'announcements' })),
  );
  row(
    `an announcement that ${watchers} hear, none of them reading`,
    few,
    () => announce(broker, TOPIC, encode),
    base,
  );
  for (const watching of watches) watching.close();
}
await broker.close();
if (sink < 0) console.log(sink);
