import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Broker, BrokerError } from '@brokerfeed/core';
import { journalBroker } from '@brokerfeed/journal';
import { PGlite } from '@electric-sql/pglite';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { codeBlocks, readText, sectionOf } from './support/documents.ts';
import { addToOutbox, drainOutbox, type Sql } from './support/outbox.ts';
import { SOAK } from './support/soak.ts';

/** A database that is compiled first, and shares two cores with other tests. */
vi.setConfig({ testTimeout: 60_000 * SOAK, hookTimeout: 60_000 });

const RECIPE = sectionOf(readText('docs/recipes.md'), '## Outbox');

/** Postgres itself, in this process. */
let db: PGlite;
beforeAll(async () => {
  db = await PGlite.create();
  await db.exec('create table orders (id int primary key)');
  await db.exec(codeBlocks(RECIPE, 'sql')[0] ?? '');
});
beforeEach(() => db.exec('truncate orders; truncate outbox'));
afterAll(() => db?.close());

test('the recipe is the code that is tested here', () => {
  expect(readText('test/support/outbox.ts')).toBe(codeBlocks(RECIPE, 'ts')[0]);
});

test('what a transaction wrote is appended as one commit, and what was rolled back is not', async () => {
  await using journal = await openJournal();
  await order([1, 2], 'commit');
  await order([3], 'roll back');
  await order([4], 'commit');
  await drainOutbox(db, journal.broker);
  expect(await journal.commits()).toEqual([['1', '2'], ['4']]);
  expect(await left()).toBe(0);
});

test('an outbox of many rows is drained to its end, in order', async () => {
  await using journal = await openJournal();
  const ids = Array.from({ length: 230 }, (_, index) => index);
  for (const id of ids) await order([id], 'commit');
  await drainOutbox(db, journal.broker);
  expect(await journal.commits()).toEqual(ids.map((id) => [`${id}`]));
  expect(await left()).toBe(0);
});

test('two relays at once, and one that comes late with rows that are gone, append nothing twice', async () => {
  await using journal = await openJournal();
  for (let id = 0; id < 20; id += 1) await order([id], 'commit');
  let release = (): void => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const late = drainOutbox(
    {
      async query(text, values) {
        const result = await db.query(text, values);
        if (text.startsWith('select')) await released;
        return result as never;
      },
    },
    journal.broker,
  );
  await Promise.all([drainOutbox(db, journal.broker), drainOutbox(db, journal.broker)]);
  expect(await left()).toBe(0);
  release();
  await late;
  expect(await journal.commits()).toEqual(Array.from({ length: 20 }, (_, id) => [`${id}`]));
});

test('wherever the relay is killed, each commit is in the log once, in order', async () => {
  const run = fc.record({
    /** How many entries each transaction writes, and whether it commits. */
    writes: fc.array(
      fc.record({ entries: fc.integer({ min: 1, max: 3 }), commits: fc.boolean() }),
      {
        minLength: 1,
        maxLength: 6,
      },
    ),
    /** After which step, counted from its start, each relay dies: a statement or an append, before or after it was done. */
    deaths: fc.array(fc.integer({ min: 0, max: 14 }), { maxLength: 4 }),
  });
  await fc.assert(
    fc.asyncProperty(run, async ({ writes, deaths }) => {
      await db.exec('truncate orders; truncate outbox');
      await using journal = await openJournal();
      const committed: string[][] = [];
      let id = 0;
      for (const { entries, commits } of writes) {
        const ids = Array.from({ length: entries }, () => id++);
        await order(ids, commits ? 'commit' : 'roll back');
        if (commits) committed.push(ids.map(String));
      }
      for (const death of deaths) {
        const mortal = killedAfter(death);
        await drainOutbox(mortal.sql(db), mortal.broker(journal.broker)).catch((error) => {
          expect(error).toBe(KILLED);
        });
        await journal.reopen();
      }
      await drainOutbox(db, journal.broker);
      expect(await journal.commits()).toEqual(committed);
      expect(await left()).toBe(0);
    }),
    {
      numRuns: 25 * SOAK,
      // Between the first append and its delete.
      examples: [[{ writes: [{ entries: 2, commits: true }], deaths: [3] }]],
    },
  );
});

test('from its place in the outbox to its end, a transaction holds up those that want one', async () => {
  const held = async (sql: Sql): Promise<unknown> => {
    const { rows } = await sql.query(
      "select objid::int, mode, granted from pg_locks where locktype = 'advisory'",
    );
    return rows;
  };
  const taken = await db.transaction(async (tx) => {
    const statements: string[] = [];
    const seen: Sql = {
      query(text, values) {
        statements.push(text.split(' ', 2).join(' '));
        return tx.query(text, values);
      },
    };
    await addToOutbox(seen, 'orders', ['1']);
    return { statements, locks: await held(tx) };
  });
  expect(taken.statements).toEqual(['select pg_advisory_xact_lock(741852)', 'insert into']);
  expect(taken.locks).toEqual([{ objid: 741852, mode: 'ExclusiveLock', granted: true }]);
  expect(await held(db)).toEqual([]);
});

test('a row that the log refuses holds up what is behind it, and is told', async () => {
  await using journal = await openJournal();
  await db.transaction((tx) => addToOutbox(tx, '', ['1']));
  await order([2], 'commit');
  await expect(drainOutbox(db, journal.broker)).rejects.toBeInstanceOf(BrokerError);
  expect(await journal.commits()).toEqual([]);
  expect(await left()).toBe(2);
});

/** Writes orders and their announcement in one transaction. */
async function order(ids: readonly number[], end: 'commit' | 'roll back'): Promise<void> {
  await db.transaction(async (tx) => {
    for (const id of ids) await tx.query('insert into orders (id) values ($1)', [id]);
    await addToOutbox(tx, 'orders', ids.map(String));
    if (end === 'roll back') await tx.rollback();
  });
}

/** Counts what is in the outbox. */
async function left(): Promise<number> {
  const { rows } = await db.query<{ count: number }>('select count(*)::int as count from outbox');
  return rows[0]?.count ?? -1;
}

interface OpenJournal extends AsyncDisposable {
  readonly broker: Broker;
  /** Ends the process that has it open, and begins another one. */
  reopen(): Promise<void>;
  /** The commits of topic `orders`. */
  commits(): Promise<string[][]>;
}

async function openJournal(): Promise<OpenJournal> {
  const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-outbox-'));
  const open = (): Broker => journalBroker({ dir, fsync: 'never' });
  let broker = open();
  return {
    get broker() {
      return broker;
    },
    async reopen() {
      await broker.close();
      broker = open();
    },
    async commits() {
      const page = await broker.log.page('orders', 'earliest', 1000);
      if (page.verdict !== 'ok') expect.fail(page.verdict);
      return page.commits.map(({ entries }) => entries.map(({ value }) => value));
    },
    async [Symbol.asyncDispose]() {
      await broker.close();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

const KILLED = new Error('killed');

/** A process that dies after so many steps: each statement and each append is one before and one after it is done. */
function killedAfter(steps: number): { sql(of: Sql): Sql; broker(of: Broker): Broker } {
  let rest = steps;
  const step = async <Result>(run: () => Promise<Result>): Promise<Result> => {
    if (rest-- <= 0) throw KILLED;
    const result = await run();
    if (rest-- <= 0) throw KILLED;
    return result;
  };
  return {
    sql: (of) => ({ query: (text, values) => step(() => of.query(text, values)) }),
    broker: (of) => {
      const log = Object.create(of.log, {
        append: {
          value: (...given: Parameters<Broker['log']['append']>) =>
            step(() => of.log.append(...given)),
        },
      });
      return Object.create(of, { log: { value: log } });
    },
  };
}
