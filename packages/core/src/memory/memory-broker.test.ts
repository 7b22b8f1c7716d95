import { describe, expect, test } from 'vitest';
import type { Broker, Commit, Retention } from '../broker.ts';
import type { Clock } from '../clock.ts';
import { type MemoryBrokerOptions, memoryBroker } from './memory-broker.ts';
import { memoryStore } from './memory-store.ts';

// What is the memory broker's own. The laws that it shares with every broker are in @brokerfeed/conformance.

const HOUR_MS = 3_600_000;

describe('retention', () => {
  test('keeps the newest maxEntries, and of the commit that holds the oldest of them the rest', async () => {
    const broker = memoryBroker({ retention: { maxEntries: 3 } });
    await appendAll(broker, [['a', 'b'], ['c', 'd'], ['e'], ['f']]);
    expect(await values(broker)).toEqual([['c', 'd'], ['e'], ['f']]);
    await appendAll(broker, [['g', 'h']]);
    expect(await values(broker)).toEqual([['f'], ['g', 'h']]);
  });

  test('keeps the newest commit, however many entries it has', async () => {
    const broker = memoryBroker({ retention: { maxEntries: 2 } });
    await appendAll(broker, [['a'], ['b', 'c', 'd']]);
    expect(await values(broker)).toEqual([['b', 'c', 'd']]);
    await appendAll(broker, [['e'], ['f']]);
    expect(await values(broker)).toEqual([['e'], ['f']]);
  });

  test('keeps 10 000 entries of a topic by default', async () => {
    const broker = memoryBroker();
    for (let count = 0; count < 10_003; count += 1) await broker.log.append('t', String(count));
    const { first, last } = await broker.log.bounds('t');
    expect([first.ordinal, last.ordinal]).toEqual([3, 10_003]);
  });

  test('drops commits older than maxAgeMs at the next append, to the exact millisecond', async () => {
    const clock = manualClock();
    const broker = memoryBroker({ clock, retention: { maxAgeMs: 100 } });
    await appendAll(broker, [['a']]);
    clock.ms += 1;
    await appendAll(broker, [['b']]);
    clock.ms += 100;
    await appendAll(broker, [['c']]);
    expect(await values(broker)).toEqual([['b'], ['c']]);
  });

  test('gives way to that of an append, bound by bound', async () => {
    const clock = manualClock();
    const broker = memoryBroker({ clock, retention: { maxEntries: 2, maxAgeMs: 100 } });
    const append = async (value: string, retention: Retention): Promise<string[]> => {
      clock.ms += 30;
      await broker.log.append('t', value, { retention });
      return (await values(broker)).flat();
    };
    for (const value of ['a', 'b']) await append(value, { maxEntries: 10 });
    expect(await append('c', { maxEntries: 10 })).toEqual(['a', 'b', 'c']);
    expect(await append('d', {})).toEqual(['c', 'd']);
    expect(await append('e', { maxEntries: 10 })).toEqual(['c', 'd', 'e']);
    clock.ms += 60;
    expect(await append('f', { maxEntries: 10 })).toEqual(['e', 'f']);
    expect(await append('g', { maxAgeMs: 29 })).toEqual(['g']);
  });

  test('belongs to the broker that appends', async () => {
    const store = memoryStore();
    const wide = memoryBroker({ store });
    const narrow = memoryBroker({ store, retention: { maxEntries: 1 } });
    await appendAll(wide, [['a'], ['b'], ['c']]);
    expect(await values(narrow)).toHaveLength(3);
    await appendAll(narrow, [['d']]);
    expect(await values(wide)).toEqual([['d']]);
  });
});

describe('idempotency keys', () => {
  test('are remembered for 24 hours by default', async () => {
    const clock = manualClock();
    const broker = memoryBroker({ clock });
    const first = await broker.log.append('t', 'a', { idempotencyKey: 'k' });
    clock.ms += 24 * HOUR_MS - 1;
    expect(await broker.log.append('t', 'a', { idempotencyKey: 'k' })).toEqual(first);
    clock.ms += 1;
    const second = await broker.log.append('t', 'a', { idempotencyKey: 'k' });
    expect(second.ordinal).toBe(2);
  });

  test('are remembered for their window from the first append, not from a repeat', async () => {
    const clock = manualClock();
    const broker = memoryBroker({ clock, idempotencyWindowMs: 100 });
    await broker.log.append('t', 'a', { idempotencyKey: 'k' });
    clock.ms += 60;
    await broker.log.append('t', 'a', { idempotencyKey: 'k' });
    clock.ms += 60;
    const later = await broker.log.append('t', 'other', { idempotencyKey: 'k' });
    expect(later.ordinal).toBe(2);
  });

  test('of two windows each end in their own time', async () => {
    const clock = manualClock();
    const store = memoryStore();
    const long = memoryBroker({ store, clock, idempotencyWindowMs: 1000 });
    const short = memoryBroker({ store, clock, idempotencyWindowMs: 10 });
    await long.log.append('t', 'a', { idempotencyKey: 'long' });
    await short.log.append('t', 'a', { idempotencyKey: 'short' });
    clock.ms += 10;
    await short.log.append('t', 'b', { idempotencyKey: 'short' });
    await long.log.append('t', 'a', { idempotencyKey: 'long' });
    expect(await values(long)).toEqual([['a'], ['a'], ['b']]);
  });
});

test('an entry larger than maxEntryBytes is refused, in UTF-8 bytes, and nothing is written', async () => {
  const broker = memoryBroker({ maxEntryBytes: 4 });
  await broker.log.append('t', ['1234', 'éé']);
  const refused = { name: 'BrokerError', code: 'ENTRY_TOO_LARGE' };
  await expect(broker.log.append('t', '12345')).rejects.toMatchObject(refused);
  await expect(broker.log.append('t', ['good', 'ééé'])).rejects.toMatchObject(refused);
  expect(await values(broker)).toEqual([['1234', 'éé']]);
});

test('brokers without a common store share nothing', async () => {
  const [one, other] = [memoryBroker(), memoryBroker()];
  const position = await one.log.append('t', 'a');
  const page = await other.log.page('t', position, 1);
  expect(page.verdict).toBe('epoch');
});

test('a position is the ordinal in decimal', async () => {
  const broker = memoryBroker();
  const { first } = await broker.log.bounds('t');
  const position = await broker.log.append('t', 'a');
  expect([first.id, position.id]).toEqual(['0', '1']);
});

test('what readers share is frozen', async () => {
  const broker = memoryBroker();
  const position = await broker.log.append('t', ['a', 'b'], { headers: { name: 'x' } });
  const [commit] = await commits(broker);
  const shared = [position, commit, commit?.previous, commit?.position, commit?.entries];
  for (const object of [...shared, ...(commit?.entries ?? [])]) {
    expect(Object.isFrozen(object)).toBe(true);
  }
});

test('live reads leave no listener on their signal, and any number of them may wait', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): number => warnings.push(warning);
  process.on('warning', onWarning);
  const broker = memoryBroker();
  const position = await broker.log.append('t', 'a');
  const abort = new AbortController();
  let delivered = 0;
  const sink = {
    live: () => {},
    commits: () => {
      delivered += 1;
    },
  };
  const reads = [broker.log.follow('t', position, sink, abort.signal)];
  for (let count = 0; count < 20; count += 1) {
    reads.push(broker.log.follow('t', position, sink, new AbortController().signal));
  }
  // Each round wakes every read, which then waits anew on the same signal.
  for (let round = 1; round <= 20; round += 1) {
    await broker.log.append('t', 'b');
    await turn();
    expect(delivered).toBe(21 * round);
  }
  abort.abort();
  expect(await reads[0]).toBe(undefined);
  await broker.close();
  const ends = await Promise.allSettled(reads);
  process.off('warning', onWarning);
  expect(ends.filter((end) => end.status === 'rejected')).toHaveLength(20);
  expect(warnings).toEqual([]);
});

test('a live read that was aborted, or whose broker was closed, no longer watches its topic', async () => {
  const store = memoryStore();
  const watch = store.watch.bind(store);
  let watching = 0;
  store.watch = (topic, wake) => {
    const stop = watch(topic, wake);
    watching += 1;
    return () => {
      watching -= 1;
      stop();
    };
  };
  const broker = memoryBroker({ store });
  const position = await broker.log.append('t', 'a');
  const sink = { live: () => {}, commits: () => {} };
  const abort = new AbortController();
  const aborted = broker.log.follow('t', position, sink, abort.signal);
  const closed = broker.log.follow('t', position, sink, new AbortController().signal);
  await turn();
  expect(watching).toBe(2);
  abort.abort();
  await aborted;
  expect(watching).toBe(1);
  await broker.close();
  await expect(closed).rejects.toMatchObject({ code: 'CLOSED' });
  expect(watching).toBe(0);
});

test.each<[option: string, options: unknown]>([
  ['store', { store: {} }],
  ['store', { store: null }],
  ['retention', { retention: 5 }],
  ['retention', { retention: null }],
  ['retention.maxEntries', { retention: { maxEntries: 0 } }],
  ['retention.maxEntries', { retention: { maxEntries: 1.5 } }],
  ['retention.maxEntries', { retention: { maxEntries: Number.POSITIVE_INFINITY } }],
  ['retention.maxAgeMs', { retention: { maxAgeMs: -1 } }],
  ['retention.maxAgeMs', { retention: { maxAgeMs: '1h' } }],
  ['idempotencyWindowMs', { idempotencyWindowMs: Number.NaN }],
  ['maxEntryBytes', { maxEntryBytes: 0 }],
])('%s is refused by name in %o', (option, options) => {
  expect(() => memoryBroker(options as MemoryBrokerOptions)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(new RegExp(`^${option} is `)),
    }),
  );
});

/** A turn of the event loop: every microtask has run. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function manualClock(): Clock & { ms: number } {
  const clock = { ms: 1_000_000, now: () => clock.ms, after: () => () => {} };
  return clock;
}

async function appendAll(broker: Broker, list: readonly string[][]): Promise<void> {
  for (const entries of list) await broker.log.append('t', entries);
}

async function commits(broker: Broker): Promise<readonly Commit[]> {
  const page = await broker.log.page('t', 'earliest', 20_000);
  return page.verdict === 'ok' ? page.commits : expect.fail(page.verdict);
}

async function values(broker: Broker): Promise<string[][]> {
  const read = await commits(broker);
  return read.map((commit) => commit.entries.map((entry) => entry.value));
}
