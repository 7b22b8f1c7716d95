import { afterEach, describe, expect, test } from 'vitest';
import { freshTopic } from './broker-harness.ts';
import type { FaultStore, Faults } from './faults-harness.ts';
import { feedSubscribers } from './faults-subscriber.ts';
import { FaultWorld } from './faults-world.ts';

/** The options of {@link testFaults}. */
export interface TestFaultsOptions {
  /**
   * Subscribers of each fault: half through each instance, half told by snapshots and half by refusals, a quarter away
   * while the fault lasts.
   * @default 16
   */
  readonly subscribers?: number;
  /**
   * How long one fault may take, in milliseconds.
   * @default 60_000
   */
  readonly timeoutMs?: number;
}

/**
 * Declares a vitest suite that does faults to a store while two instances append to it and feed from it. After each,
 * every subscriber must have every acknowledged entry, once and in order, or have been told of a loss that the log really
 * had; and no more. `make` is called for each fault.
 */
export function testFaults<Store extends FaultStore>(
  name: string,
  make: () => Promise<Store>,
  faults: Faults<Store>,
  options: TestFaultsOptions = {},
): void {
  const { subscribers: count = 16, timeoutMs = 60_000 } = options;
  describe(name, { timeout: timeoutMs }, () => {
    const ends: (() => PromiseLike<void>)[] = [];
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    test.each(Object.entries(faults))('%s', async (_, fault) => {
      const store = await make();
      ends.push(() => store[Symbol.asyncDispose]());
      const brokers = await Promise.all([store.open(), store.open()]);
      ends.push(async () => {
        await Promise.all(brokers.map((broker) => broker.close()));
      });
      const topic = freshTopic('fault');
      const subscribers = feedSubscribers(brokers, topic, count);
      const world = new FaultWorld({ topic, appender: brokers[0] }, subscribers);
      ends.push(() => world[Symbol.asyncDispose]());
      await world.start();
      await world.run(fault, store);
      const { lost, repeated, failed, problems } = world.ledger;
      expect({ lost, repeated, failed, problems }).toEqual({
        lost: 0,
        repeated: 0,
        failed: 0,
        problems: [],
      });
    });
  });
}
