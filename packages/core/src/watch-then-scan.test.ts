import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { turns } from '../test/support/feed-rig.ts';
import { deferred } from './deferred.ts';
import { announce, type Watch, watch, watchThenScan } from './index.ts';
import { memoryBroker } from './memory/index.ts';

const T = 'rows';

/** A step of the recipe that a test leaves out. */
type Omitted = 'the first scan' | 'the scan on lag' | 'watching first' | 'reading anew' | undefined;

interface Write {
  readonly key: string;
  readonly by: 'append' | 'announce';
  /** Turns that pass before the next write. */
  readonly pause: number;
}

const writes: fc.Arbitrary<Write[]> = fc.array(
  fc.record({
    key: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    by: fc.constantFrom('append' as const, 'announce' as const),
    pause: fc.integer({ min: 0, max: 12 }),
  }),
  { minLength: 1, maxLength: 40 },
);

const world = fc.record({
  writes,
  capacity: fc.integer({ min: 1, max: 8 }),
  startAfter: fc.integer({ min: 0, max: 20 }),
  scanTurns: fc.integer({ min: 0, max: 6 }),
  applyTurns: fc.integer({ min: 0, max: 6 }),
});

type World = typeof world extends fc.Arbitrary<infer W> ? W : never;

describe('a copy that is kept by watching, then scanning', () => {
  test('converges on what a live writer leaves, whatever the watch loses, and no row goes back', async () => {
    await fc.assert(
      fc.asyncProperty(world, (made) => converges(made, undefined)),
      { numRuns: 300 },
    );
  });

  // Reading anew: in place of it, what an event carries is taken for the row as it is.
  test.each(['the first scan', 'the scan on lag', 'watching first', 'reading anew'] as const)(
    'does not, without %s',
    async (omitted) => {
      const run = await fc.check(
        fc.asyncProperty(world, (made) => converges(made, omitted)),
        { numRuns: 300, endOnFailure: true },
      );
      expect(run.failed).toBe(true);
    },
  );
});

test('it ends with the watch, and with what a callback throws', async () => {
  await using broker = memoryBroker();
  const watching = await watch(broker, T);
  const options = { watch: () => watching, key: () => 'k', apply: () => {} };
  const keeping = watchThenScan({ ...options, scan: () => {} });
  watching.close();
  await keeping;

  const failing = await watch(broker, T);
  const error = new Error('no database');
  const scan = () => Promise.reject(error);
  await expect(watchThenScan({ ...options, watch: () => failing, scan })).rejects.toBe(error);
  expect(failing.tryNext()).toEqual({ kind: 'closed' });
});

test.each(['key', 'apply'] as const)(
  'what %s throws is its end, and neither the writer nor another watch notices',
  async (which) => {
    await using broker = memoryBroker();
    await using other = await watch(broker, T);
    const watching = await watch(broker, T);
    const error = new Error('cannot be applied');
    const fail = (): never => {
      throw error;
    };
    const keeping = watchThenScan({
      watch: () => watching,
      scan: () => {},
      key: () => 'k',
      apply: () => {},
      [which]: fail,
    });
    const ended = expect(keeping).rejects.toBe(error);
    await broker.log.append(T, 'a');
    await ended;
    expect((await broker.log.append(T, 'b')).ordinal).toBe(2);
    for (const value of ['a', 'b']) expect(await other.next()).toMatchObject({ entry: { value } });
    expect(watching.tryNext()).toEqual({ kind: 'closed' });
  },
);

test('an event whose key is undefined is left out', async () => {
  await using broker = memoryBroker();
  const watching = await watch(broker, T);
  const applied: string[] = [];
  const keeping = watchThenScan<string>({
    watch: () => watching,
    scan: () => {},
    key: (event) => (event.kind === 'announcement' ? event.value : undefined),
    apply: (key) => void applied.push(key),
  });
  announce(broker, T, 'said');
  await broker.log.append(T, 'written');
  while (applied.length === 0) await turns(1);
  watching.close();
  await keeping;
  expect(applied).toEqual(['said']);
});

/**
 * Lets a writer write and a copy be kept beside it; answers whether they are the same once all is quiet, and no row of the
 * copy was ever replaced by an older one.
 */
async function converges(made: World, omitted: Omitted): Promise<boolean> {
  const { capacity, startAfter, scanTurns, applyTurns } = made;
  await using broker = memoryBroker();
  const rows = new Map<string, number>();
  let copy = new Map<string, number>();
  let scans = 0;
  let wentBack = false;
  const take = (key: string, row: number): void => {
    if (row < (copy.get(key) ?? 0)) wentBack = true;
    copy.set(key, row);
  };

  const writing = (async () => {
    let version = 0;
    for (const { key, by, pause } of made.writes) {
      version += 1;
      // First the row, then the news of it.
      rows.set(key, version);
      const news = `${key} ${version}`;
      if (by === 'announce') announce(broker, T, news);
      else await broker.log.append(T, news);
      await turns(pause);
    }
  })();

  await turns(startAfter);
  const scan = async (): Promise<void> => {
    scans += 1;
    if (scans === 1 ? omitted === 'the first scan' : omitted === 'the scan on lag') return;
    // Row by row, so that the writer may be anywhere meanwhile.
    const fresh = new Map<string, number>();
    for (const key of [...rows.keys()]) {
      await turns(scanTurns);
      fresh.set(key, rows.get(key) as number);
    }
    if ([...copy].some(([key, row]) => row > (fresh.get(key) ?? 0))) wentBack = true;
    copy = fresh;
  };
  const watching = deferred<Watch>();
  const keeping = watchThenScan<string>({
    watch: async () => {
      if (omitted === 'watching first') await scan();
      const made = await watch(broker, T, { capacity });
      watching.resolve(made);
      return made;
    },
    scan: omitted === 'watching first' ? afterFirst(scan) : scan,
    key: (event) => (event.kind === 'entry' ? event.entry.value : event.value),
    apply: async (news) => {
      const [key, carried] = news.split(' ') as [string, string];
      const row = omitted === 'reading anew' ? Number(carried) : (rows.get(key) as number);
      await turns(applyTurns);
      take(key, row);
    },
  });
  await writing;
  const watched = await watching.promise;
  // The tail takes its turns to bring the last entry; what came is taken to its end after the close.
  await new Promise(setImmediate);
  watched.close();
  await keeping;
  return sameRows(rows, copy) && !wentBack;
}

function afterFirst(scan: () => Promise<void>): () => Promise<void> {
  let calls = 0;
  return async () => {
    calls += 1;
    if (calls > 1) await scan();
  };
}

function sameRows(one: Map<string, number>, other: Map<string, number>): boolean {
  return one.size === other.size && [...one].every(([key, row]) => other.get(key) === row);
}
