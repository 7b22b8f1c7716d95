import { setTimeout as sleep } from 'node:timers/promises';
import type { Latency } from '../harness/load-api.ts';
import { quantile } from '../harness/stats.ts';
import type { Clients } from './clients.ts';

/** How long the last entries may take to arrive. */
const PATIENCE_MS = 10_000;
/** Sleeps come late by about this much, in milliseconds: they end earlier, and the rest is waited for busily. */
const SLEEP_SLACK_MS = 1.5;

export interface SteadyOptions {
  readonly rate: number;
  readonly seconds: number;
  /** Deliveries that one entry makes. */
  readonly deliveriesPerEntry: number;
  /** Publishes the next entry and answers its number. */
  publish(): number;
}

/** Publishes at a rate, and measures from each call to each frame it becomes. */
export async function steady(clients: Clients, options: SteadyOptions): Promise<Latency> {
  const sentAt = new Map<number, number>();
  const latencies: number[] = [];
  const before = clients.tally().deliveries;
  clients.onDelivery = (_client, seq) => {
    const at = sentAt.get(seq);
    if (at !== undefined) latencies.push(performance.now() - at);
  };
  const total = Math.round(options.rate * options.seconds);
  const start = performance.now();
  for (let published = 0; published < total; ) {
    const elapsed = performance.now() - start;
    const due = Math.min(total, Math.floor((elapsed * options.rate) / 1000) + 1);
    for (; published < due; published += 1) {
      const at = performance.now();
      sentAt.set(options.publish(), at);
    }
    const wait = start + (published * 1000) / options.rate - performance.now();
    if (wait > SLEEP_SLACK_MS) await sleep(wait - SLEEP_SLACK_MS / 2);
    else await new Promise((resolve) => setImmediate(resolve));
  }
  const expected = total * options.deliveriesPerEntry;
  await clients.waitFor(before + expected, PATIENCE_MS);
  clients.onDelivery = undefined;
  const sorted = Float64Array.from(latencies).sort();
  return {
    count: clients.tally().deliveries - before,
    expected,
    p50: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    max: sorted.at(-1) ?? Number.NaN,
  };
}
