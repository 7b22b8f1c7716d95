// One kind of call, started by name, in a process of its own: what it takes where nobody listens. (harness/calls-api.ts)
import { announce, changes, localChanges, watch } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';

const TOPIC = 'presence';
/** A log that grows would be measured with it. */
const RETENTION = { maxEntries: 100 };
const note = 'x'.repeat(100);
const state = { user: 'ada', x: 12, y: 34, note };
const mutation = {
  kind: 'entity',
  op: 'update',
  entity: { id: 'ada', type: 'user', metadata: state },
};

let sink = 0;
const encode = () => JSON.stringify(state);
const text = encode();
const mutations = () => [mutation];

/** Makes each call. Those of a log are asynchronous, and are awaited one by one. */
const CALLS = {
  // A value's function is passed to it, as to the others, and it is not optimised away.
  'call-bare': () => {
    const bare = (topic, value) => {
      if (topic === 'nobody') sink += value().length;
    };
    return () => bare(TOPIC, encode);
  },
  'call-announce': () => {
    const broker = memoryBroker();
    return () => announce(broker, TOPIC, encode);
  },
  'call-announce-elsewhere': async () => {
    const broker = memoryBroker();
    await watch(broker, 'another topic');
    return () => announce(broker, TOPIC, encode);
  },
  'call-encode': () => () => {
    sink += encode().length;
  },
  'call-announce-heard': async () => {
    const broker = memoryBroker();
    await watch(broker, TOPIC, { only: 'announcements' });
    return () => announce(broker, TOPIC, encode);
  },
  'call-async': () => {
    const bare = async (topic, value) => {
      if (topic === 'nobody') sink += value().length;
    };
    return () => bare(TOPIC, encode);
  },
  'call-change': () => {
    const feed = localChanges();
    return () => feed.append(mutations);
  },
  'call-change-heard': () => {
    const feed = localChanges();
    feed.onChange((change) => {
      sink += change.index;
    });
    return () => feed.append(mutations);
  },
  'call-append': () => {
    const { log } = memoryBroker({ retention: RETENTION });
    return () => log.append(TOPIC, text);
  },
  'call-append-watched': async () => {
    const broker = memoryBroker({ retention: RETENTION });
    await watch(broker, TOPIC);
    return () => broker.log.append(TOPIC, text);
  },
  'call-change-log': () => {
    const feed = changes(memoryBroker({ retention: RETENTION }), TOPIC);
    return () => feed.append(mutations);
  },
};

/** So many calls go before, so that compilers have done what they do. */
const WARM_CALLS = 50_000;

/** Calls so many times. What answers promises is awaited each time. */
function turn(call, calls) {
  if (call() instanceof Promise) return awaited(call, calls);
  for (let n = 1; n < calls; n += 1) call();
}

async function awaited(call, calls) {
  for (let n = 1; n < calls; n += 1) await call();
}

/** Nanoseconds of one call. */
async function timed(call, calls) {
  const start = process.hrtime.bigint();
  await turn(call, calls);
  return Number(process.hrtime.bigint() - start) / calls;
}

/** So few that none of them is collected before it is counted. */
const COUNTED_CALLS = 2_000;

/** Bytes that one call leaves to be collected. */
async function allocated(call) {
  globalThis.gc();
  const before = process.memoryUsage().heapUsed;
  await turn(call, COUNTED_CALLS);
  return (process.memoryUsage().heapUsed - before) / COUNTED_CALLS;
}

/** The least of all rounds: others on the machine, and compilers, can only add. */
async function least(rounds, measure) {
  let value = Number.POSITIVE_INFINITY;
  for (let round = 0; round < rounds; round += 1) value = Math.min(value, await measure());
  return value;
}

const api = {
  async measure({ calls, rounds }) {
    await turn(call, WARM_CALLS);
    return {
      ns: await least(rounds, () => timed(call, calls)),
      // Rounded, since a reading allocates as well.
      bytes: Math.round(await least(rounds, () => allocated(call))),
    };
  },
};

async function answer({ id, name, argument }) {
  try {
    process.send({ id, value: await api[name](argument) });
  } catch (error) {
    process.send({ id, error: String(error?.stack ?? error) });
  }
}

process.on('message', (message) => void answer(message));
process.on('disconnect', () => process.exit(0));

// First, so that each is called from a place that has seen many functions: an only one would be inlined there.
for (const make of Object.values(CALLS)) await turn(await make(), 5_000);
const call = await CALLS[process.argv[2]]();
process.send({ ready: sink });
