import type { Broker } from '@brokerfeed/core';

/** The part of a Postgres client that is used; a pool has it, and the client of a transaction. */
export interface Sql {
  query<Row>(text: string, values?: unknown[]): Promise<{ readonly rows: readonly Row[] }>;
}

/** Adds a commit to the outbox. The last thing that its transaction does: others wait here until that one has ended. */
export async function addToOutbox(transaction: Sql, topic: string, entries: readonly string[]) {
  // Places are given out before transactions commit. With the lock held until then, their order is that of the commits.
  await transaction.query('select pg_advisory_xact_lock(741852)');
  await transaction.query('insert into outbox (topic, entries) values ($1, $2)', [topic, entries]);
}

const ROWS = 100;

/** Appends what is in the outbox, in the order of its commits, and empties it. May run on several instances at once. */
export async function drainOutbox(sql: Sql, broker: Broker): Promise<void> {
  for (let found = ROWS; found === ROWS; ) {
    const { rows } = await sql.query<{ id: string; topic: string; entries: string[] }>(
      `select id, topic, entries from outbox order by place limit ${ROWS}`,
    );
    for (const { id, topic, entries } of rows) {
      await broker.log.append(topic, entries, { idempotencyKey: id });
      // After a crash here the row is appended again, under a key that is known: nothing is written twice.
      await sql.query('delete from outbox where id = $1', [id]);
    }
    found = rows.length;
  }
}
