/**
 * Does random faults of the matrix to a Redis, for as long as it is told, under subscribers of both transports on two
 * instances in processes of their own; prints a ledger, and fails where it is not clean.
 *
 *   pnpm soak:faults --minutes 20 [--subscribers 200] [--seed 7] [--only 'deleted|expires'] [--scale 1]
 */
import { parseArgs } from 'node:util';
import {
  type Fault,
  type FaultLedger,
  type FaultStore,
  type Faults,
  FaultWorld,
} from '@brokerfeed/conformance';
import { startFleet } from '../support/fault-fleet.ts';
import { FleetProcess } from '../support/fault-process.ts';
import { RedisFaultStore } from '../support/redis-fault-store.ts';
import {
  APPENDS,
  COMMANDS,
  PROMOTIONS,
  RESTARTS,
  SILENCES,
  TRIMS,
} from '../support/redis-faults.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    subscribers: { type: 'string', default: '200' },
    only: { type: 'string', default: '' },
    scale: { type: 'string' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
  },
});
const minutes = Number(values.minutes);
const count = Number(values.subscribers);
const MINUTE_MS = 60_000;
/** Faults before all is made anew: servers, processes, subscribers. */
const FAULTS_PER_WORLD = 12;
/** How many times longer than in the suite a fault lasts: a second there is 20 s here now and then. */
const SCALES = [1, 1, 1, 5, 10, 20];
const DEADLINE_MS = 90_000;
const APPEND_EVERY_MS = 50;

const random = generator(Number(values.seed));
const total: FaultLedger = {
  faults: 0,
  acknowledged: 0,
  delivered: 0,
  told: 0,
  lost: 0,
  repeated: 0,
  failed: 0,
  problems: [],
};
const byName = new Map<string, number>();
let rejections = 0;
process.on('unhandledRejection', (error) => {
  rejections += 1;
  console.error('unhandled rejection:', error);
});

// What was started ends with this process, but not with a signal that nobody handles.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

console.log(`${minutes} minutes, ${count} subscribers, seed ${values.seed}`);
const end = Date.now() + minutes * MINUTE_MS;
while (Date.now() < end) await soakWorld();
for (const [name, times] of [...byName].sort())
  console.log(`${String(times).padStart(4)}  ${name}`);
console.log(ledgerLine());
const clean = total.lost + total.repeated + total.failed + rejections === 0;
process.exit(clean ? 0 : 1);

/** Does some faults to a fresh Redis. */
async function soakWorld(): Promise<void> {
  const scale = values.scale === undefined ? pick(SCALES) : Number(values.scale);
  await using store = await RedisFaultStore.start();
  await using broker = await store.open();
  const topic = 'orders';
  await using first = await startInstance(store, topic);
  await using second = await startInstance(store, topic);
  await using fleet = await startFleet(() => [first, second], count);
  const options = { topic, appender: broker, everyMs: APPEND_EVERY_MS, deadlineMs: DEADLINE_MS };
  await using world = new FaultWorld({ ...options, scale }, fleet.subscribers);
  const only = new RegExp(values.only);
  const all = Object.entries({
    ...RESTARTS,
    ...PROMOTIONS,
    ...SILENCES,
    ...COMMANDS,
    ...TRIMS,
    ...APPENDS,
    ...instanceFaults([first, second]),
  }) as [string, Fault<RedisFaultStore>][];
  const faults = all.filter(([name]) => only.test(name));
  try {
    await world.start();
    for (let n = 0; n < FAULTS_PER_WORLD && Date.now() < end; n += 1) {
      const [name, fault] = pick(faults);
      byName.set(name, (byName.get(name) ?? 0) + 1);
      const began = Date.now();
      await world.run(fault, store).catch((error: unknown) => {
        throw new Error(`${name} (x${scale}): ${error instanceof Error ? error.message : error}`);
      });
      console.log(`${clock()} ${name} (x${scale}, ${Date.now() - began} ms)`);
    }
  } catch (error) {
    total.failed += 1;
    console.error('FAILED', error instanceof Error ? error.message : error);
  }
  add(world.ledger);
  for (const problem of world.ledger.problems) console.error(problem);
  console.log(`${clock()} ${ledgerLine()}`);
}

function startInstance(store: RedisFaultStore, topic: string): Promise<FleetProcess> {
  return store
    .addLink()
    .then(({ port }) => FleetProcess.start({ redisPort: port, prefix: store.prefix, topic }));
}

function instanceFaults(instances: readonly FleetProcess[]): Faults<FaultStore> {
  return {
    'an instance is killed and started again': {
      expected: 'invisible',
      async inject(_, scene) {
        const instance = pick(instances);
        await instance.kill('SIGKILL');
        await scene.append(5);
        await scene.last(500);
        await instance.restart();
      },
    },
  };
}

function add(ledger: FaultLedger): void {
  for (const key of ['faults', 'acknowledged', 'delivered', 'told'] as const)
    total[key] += ledger[key];
  for (const key of ['lost', 'repeated', 'failed'] as const) total[key] += ledger[key];
}

function ledgerLine(): string {
  const { faults, acknowledged, delivered, told, lost, repeated, failed } = total;
  return [
    `faults ${faults}`,
    `acknowledged ${acknowledged}`,
    `delivered ${delivered}`,
    `told ${told}`,
    `silently lost ${lost}`,
    `repeated ${repeated}`,
    `failed ${failed}`,
    `unhandled rejections ${rejections}`,
  ].join(', ');
}

function clock(): string {
  return new Date().toISOString().slice(11, 19);
}

function pick<T>(list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

/** Random numbers in [0, 1) that a seed repeats: mulberry32. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
