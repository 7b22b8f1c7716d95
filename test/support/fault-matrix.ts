import { type Faults, FaultWorld } from '@brokerfeed/conformance';
import { afterAll, describe, expect, test } from 'vitest';
import { startFleet, startFleetServer } from './fault-fleet.ts';
import { RedisFaultStore } from './redis-fault-store.ts';
import { SOAK } from './soak.ts';

/**
 * Half of them over WebSockets, half over SSE; of each, half are told by snapshots and half by refusals. So many of each
 * kind that there are some who are away; a soak has more, which find nothing else and take their time.
 */
const SUBSCRIBERS = SOAK > 1 ? 200 : 80;
/** Machines are slow and loaded: it takes seconds. */
const TIMEOUT_MS = 120_000;
/** Each append is a delivery to each of them, stock clients in this process. */
const APPEND_EVERY_MS = 50;

/**
 * Declares a test for each fault: two instances behind a proxy, with subscribers of both transports. They go from fault to
 * fault, as clients of a service do, unless one of them was not what it should be.
 */
export function testMatrix(name: string, faults: Faults<RedisFaultStore>): void {
  describe(name, { timeout: TIMEOUT_MS }, () => {
    let matrix: Matrix | undefined;
    const end = async (): Promise<void> => {
      const ending = matrix;
      matrix = undefined;
      await ending?.[Symbol.asyncDispose]();
    };
    afterAll(end);

    test.each(Object.entries(faults))('%s', async (_, fault) => {
      matrix ??= await startMatrix();
      try {
        await matrix.world.run(fault, matrix.store);
        const { lost, repeated, failed, problems } = matrix.world.ledger;
        const clean = { lost: 0, repeated: 0, failed: 0, problems: [] };
        expect({ lost, repeated, failed, problems }).toEqual(clean);
      } catch (error) {
        await end();
        throw error;
      }
    });
  });
}

interface Matrix extends AsyncDisposable {
  readonly store: RedisFaultStore;
  readonly world: FaultWorld;
}

async function startMatrix(): Promise<Matrix> {
  const parts: AsyncDisposable[] = [];
  const end = async (): Promise<void> => {
    for (const part of parts.splice(0).reverse()) await part[Symbol.asyncDispose]();
  };
  const started = async <T extends AsyncDisposable>(starting: Promise<T>): Promise<T> => {
    const part = await starting;
    parts.push(part);
    return part;
  };
  try {
    const store = await started(RedisFaultStore.start());
    const first = await started(store.open());
    const second = await started(store.open());
    const observer = await started(store.open());
    const topic = 'orders';
    const instances = [
      await started(startFleetServer(first, topic)),
      await started(startFleetServer(second, topic)),
    ];
    const { subscribers } = await started(startFleet(() => instances, SUBSCRIBERS));
    const times = { everyMs: APPEND_EVERY_MS, deadlineMs: TIMEOUT_MS / 2 };
    const world = new FaultWorld({ topic, appender: first, observer, ...times }, subscribers);
    parts.push(world);
    await world.start();
    return { store, world, [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}
