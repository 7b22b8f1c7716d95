import { expect, test } from 'vitest';
import { observedBroker } from '../../../test/support/observed.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import type { Broker } from './broker.ts';
import { BrokerError } from './errors.ts';
import { Feed } from './feed.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';
import type { Meter } from './observer.ts';
import { TopicMeasurements } from './topic-measurements.ts';

const EVERY_MS = 1_000;

async function follow(broker: Broker, clock: ManualClock): Promise<AbortController> {
  const left = new AbortController();
  const feed = new Feed(broker, { clock, lingerMs: 0, retryDelaysMs: [60_000] });
  await feed.open({ topic: 'orders', lastEventId: '', args: {}, signal: left.signal });
  return left;
}

/** Lets one round of measurements pass, after something was appended. */
async function round(clock: ManualClock): Promise<void> {
  await clock.untilWait(EVERY_MS);
  clock.advance(EVERY_MS);
  await clock.untilWait(EVERY_MS);
}

test('a client may be away for as long as the log goes back, and that is never overstated', async () => {
  const recorded: [string, number][] = [];
  const meter: Meter = { count: () => {}, record: (name, value) => recorded.push([name, value]) };
  await using broker = memoryBroker({ retention: { maxEntries: 10 }, meter });
  const clock = new ManualClock();
  await follow(broker, clock);
  const measurements = new TopicMeasurements(broker, { everyMs: EVERY_MS, clock });
  const retained = async (appends: number): Promise<number | undefined> => {
    for (let n = 0; n < appends; n += 1) await broker.log.append('orders', String(n));
    await round(clock);
    return measurements.of('orders')?.retainedMs;
  };
  await clock.untilWait(EVERY_MS);
  // Nothing is trimmed: as long as it has been measured.
  expect([await retained(4), await retained(4)]).toEqual([1_000, 2_000]);
  // Twelve of which ten are kept: who left at the first round has missed two that are gone; a round later, four were there.
  expect(await retained(4)).toBe(2_000);
  // Five a round: ten are two rounds.
  for (let n = 0; n < 5; n += 1) await retained(5);
  expect(await retained(5)).toBe(2_000);
  // A burst: only who was here a moment ago.
  expect(await retained(50)).toBe(0);
  expect(await retained(0)).toBe(1_000);
  expect(recorded.slice(-2)).toEqual([
    ['brokerfeed.topic.retained', 1],
    ['brokerfeed.tail.lag', 0],
  ]);
  measurements.close();
  expect(clock.waits).toEqual([]);
});

test('a live read that hangs is behind by what was appended meanwhile', async () => {
  await using broker = observedBroker();
  const clock = new ManualClock();
  await follow(broker, clock);
  await broker.untilReads(1);
  const measurements = new TopicMeasurements(broker, { everyMs: EVERY_MS, clock });
  await broker.log.append('orders', '1');
  await round(clock);
  expect(measurements.of('orders')?.lag).toBe(0);
  broker.breakReads(new Error('gone'));
  await broker.untilReads(0);
  for (let n = 0; n < 7; n += 1) await broker.log.append('orders', String(n));
  await round(clock);
  expect(measurements.of('orders')?.lag).toBe(7);
  measurements.close();
});

test('a log made anew is measured anew, and a topic that nobody follows not at all', async () => {
  const store = memoryStore();
  await using broker = memoryBroker({ store });
  const clock = new ManualClock();
  const left = await follow(broker, clock);
  const measurements = new TopicMeasurements(broker, { everyMs: EVERY_MS, clock });
  await broker.log.append('orders', '1');
  await round(clock);
  await round(clock);
  expect(measurements.of('orders')?.retainedMs).toBe(2_000);
  store.drop('orders');
  await broker.log.append('orders', '1');
  await round(clock);
  expect(measurements.of('orders')?.retainedMs).toBe(0);
  left.abort();
  await round(clock);
  expect(measurements.of('orders')).toBeUndefined();
  measurements.close();
});

test('of a long time as many samples are kept as of a short one, so that it is known less finely', async () => {
  await using broker = memoryBroker({ retention: { maxEntries: 3_000 } });
  const clock = new ManualClock();
  await follow(broker, clock);
  const measurements = new TopicMeasurements(broker, { everyMs: EVERY_MS, clock });
  for (let n = 0; n < 4_003; n += 1) {
    await broker.log.append('orders', String(n));
    await round(clock);
  }
  const retainedMs = measurements.of('orders')?.retainedMs ?? 0;
  expect(retainedMs).toBeLessThan(3_000_000);
  expect(retainedMs).toBeGreaterThan(2_900_000);
  measurements.close();
});

test('options are checked, and the sentence names the bad one', async () => {
  await using broker = memoryBroker();
  for (const everyMs of [0, 1.5, Number.NaN, 2 ** 31]) {
    expect(() => new TopicMeasurements(broker, { everyMs })).toThrow(BrokerError);
    expect(() => new TopicMeasurements(broker, { everyMs })).toThrow(/^everyMs is /);
  }
});
