import { setTimeout as sleep } from 'node:timers/promises';
import type { CatchUp } from '../harness/load-api.ts';
import { quantile } from '../harness/stats.ts';
import type { Publisher, Subscription, Wire } from '../harness/system.ts';
import type { Clients } from './clients.ts';

/** How long the clients of one round may take. */
const PATIENCE_MS = 120_000;
/** Entries that are published at a time. */
const BURST = 200;

/** Clients that were away, and know where they stopped. */
export class Absent {
  readonly #subscriptions: readonly Subscription[];
  readonly #lastSeq: number;
  readonly #missed: number;

  constructor(subscriptions: readonly Subscription[], lastSeq: number, missed: number) {
    this.#subscriptions = subscriptions;
    this.#lastSeq = lastSeq;
    this.#missed = missed;
  }

  /** Connects the first so many, all at once, until each has the newest entry. */
  async resume(clients: Clients, count: number): Promise<CatchUp> {
    const newest = this.#lastSeq + this.#missed;
    const before = clients.tally().deliveries;
    const expected = count * this.#missed;
    const times: number[] = [];
    const start = performance.now();
    clients.onDelivery = (_client, seq) => {
      if (seq === newest) times.push(performance.now() - start);
    };
    for (const subscription of this.#subscriptions.slice(0, count)) {
      clients.add({ ...subscription }, this.#lastSeq);
    }
    await clients.waitFor(before + expected, PATIENCE_MS);
    // What comes now came twice.
    await sleep(50);
    clients.onDelivery = undefined;
    const deliveries = clients.tally().deliveries - before;
    await clients.drop();
    await sleep(300);
    return { deliveries, expected, p50: quantile(times, 0.5), allMs: times.at(-1) ?? Number.NaN };
  }
}

/** Notes where each client is, disconnects all, and publishes what they miss. */
export async function miss(
  clients: Clients,
  wire: Wire,
  publisher: Publisher,
  topic: string,
  next: () => { readonly seq: number; readonly text: string },
  entries: number,
): Promise<Absent> {
  const tokens = new Map<number, string>();
  clients.onDelivery = (client, _seq, frame) => {
    if (!tokens.has(client.index)) tokens.set(client.index, wire.tokenOf(frame()));
  };
  const target = clients.tally().deliveries + clients.count;
  const last = next();
  await publisher.publish(topic, last.text);
  if (!(await clients.waitFor(target))) throw new Error(`${tokens.size} clients have a token`);
  clients.onDelivery = undefined;
  const subscriptions = clients.all.map(({ index, subscription }) => ({
    ...subscription,
    lastEventId: tokens.get(index),
  }));
  await clients.drop();
  await sleep(1_000);
  for (let left = entries; left > 0; left -= BURST) {
    const burst = Array.from({ length: Math.min(left, BURST) }, () => next().text);
    await Promise.all(burst.map((text) => publisher.publish(topic, text)));
  }
  await sleep(1_000);
  clients.forgive();
  return new Absent(subscriptions, last.seq, entries);
}
