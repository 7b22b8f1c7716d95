import { setTimeout as sleep } from 'node:timers/promises';
import type { Usage } from '../harness/meter.ts';
import type { Pair } from '../harness/pair.ts';
import type { Column, Metrics } from '../harness/scenario.ts';
import type { Sizes } from '../harness/sizes.ts';

/** Entries under way, and how many are published at a time. */
export interface Pressure {
  readonly window: number;
  readonly burst: number;
}

export const BURSTS: Pressure = { window: 32, burst: 8 };
export const ONE_BY_ONE: Pressure = { window: 1, burst: 1 };

/** How many times as long as asked a slow system is measured at most. */
const MAX_MEASURES = 5;
const LOOK_MS = 100;

export const SATURATING_COLUMNS: readonly Column[] = [
  { metric: 'serverUs', title: 'server µs/delivery' },
  { metric: 'perSecond', title: 'deliveries/s' },
  { metric: 'serverCores', title: 'server cores' },
  { metric: 'loadCores', title: 'load cores' },
];

/** Publishes as fast as clients of one topic get it, and measures what a delivery costs. */
export async function saturate(
  pair: Pair,
  sizes: Sizes,
  sockets: number,
  pressure: Pressure,
): Promise<Metrics> {
  await pair.load.call('connect', { count: sockets, topics: 1 });
  await pair.load.call('prime', undefined);
  await pair.load.call('saturate', pressure);
  await sleep(sizes.warmMs);
  const stop = await pair.startMeter();
  await enough(pair, sizes, sizes.windows * pressure.window * sockets);
  const usage = await stop();
  const { missing } = await pair.load.call('stop', undefined);
  return { ...perDelivery(usage), ...(await account(pair)), missing };
}

/** Waits for so long, and on until so many more were delivered: what a slow system has under way must not count for much. */
async function enough(pair: Pair, sizes: Sizes, deliveries: number): Promise<void> {
  const target = (await pair.load.call('tally', undefined)).deliveries + deliveries;
  const deadline = performance.now() + MAX_MEASURES * sizes.measureMs;
  await sleep(sizes.measureMs);
  while (performance.now() < deadline) {
    if ((await pair.load.call('tally', undefined)).deliveries >= target) return;
    await sleep(LOOK_MS);
  }
}

export function perDelivery(usage: Usage): Metrics {
  const { seconds, deliveries } = usage;
  return {
    deliveries,
    serverUs: usage.serverUs / deliveries,
    redisUs: usage.redisUs / deliveries,
    perSecond: deliveries / seconds,
    serverCores: usage.serverUs / seconds / 1e6,
    loadCores: usage.loadUs / seconds / 1e6,
    others: usage.others,
  };
}

/** What was wrong with the deliveries of a run. */
export async function account(pair: Pair): Promise<Metrics> {
  const { lost, repeated } = await pair.load.call('tally', undefined);
  return { lost, repeated };
}
