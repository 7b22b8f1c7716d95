import assert from 'node:assert/strict';
import type { BrokerLog, Commit, Page, Position, Start } from '@brokerfeed/core';
import { expect } from 'vitest';

/** A page whose verdict is `ok`. */
export type GoodPage = Extract<Page, { verdict: 'ok' }>;

/** Reads one page, which must not be refused, and checks what every page promises. */
export async function readPage(
  log: BrokerLog,
  topic: string,
  from: Start,
  limit = 1000,
): Promise<GoodPage> {
  const page = await log.page(topic, from, limit);
  if (page.verdict !== 'ok') return expect.fail(`the page was refused: ${page.verdict}`);
  expect(page.commits.length).toBeLessThanOrEqual(limit);
  expectContiguous(page.from, page.commits);
  const end = page.commits.at(-1)?.position ?? page.from;
  expect(page.atTip).toBe(end.ordinal === page.bounds.last.ordinal);
  if (limit > 0 && !page.atTip) expect(page.commits.length).toBeGreaterThan(0);
  return page;
}

/** Reads pages of `limit` commits until the tip, each from where the one before ended. */
export async function readAll(
  log: BrokerLog,
  topic: string,
  from: Start,
  limit = 1000,
): Promise<Commit[]> {
  const commits: Commit[] = [];
  let next = from;
  for (;;) {
    const page = await readPage(log, topic, next, limit);
    commits.push(...page.commits);
    if (page.atTip) return commits;
    next = page.commits.at(-1)?.position ?? page.from;
  }
}

/** Reads where the topic ends now. */
export async function tipOf(log: BrokerLog, topic: string): Promise<Position> {
  const { from } = await readPage(log, topic, 'latest', 0);
  return from;
}

/** Reads only the verdict. */
export async function verdictOf(
  log: BrokerLog,
  topic: string,
  from: Position,
): Promise<Page['verdict']> {
  const page = await log.page(topic, from, 0);
  return page.verdict;
}

/** Appends commits of one entry each, in order, and answers the positions after them. */
export async function appendEach(
  log: BrokerLog,
  topic: string,
  values: readonly string[],
): Promise<Position[]> {
  const positions: Position[] = [];
  for (const value of values) positions.push(await log.append(topic, value));
  return positions;
}

/** Makes `count` values: `prefix-0`, `prefix-1`, and so on. */
export function numbered(count: number, prefix = 'v'): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`);
}

/** The values of commits, one list for each. */
export function valuesOf(commits: readonly Commit[]): string[][] {
  return commits.map((commit) => commit.entries.map((entry) => entry.value));
}

/** Takes one item of a list that is known to be there. */
export function at<T>(items: readonly T[], index: number): T {
  const item = items.at(index);
  if (item === undefined) return expect.fail(`there is no item ${index} among ${items.length}`);
  return item;
}

/** Checks that commits follow a position, and each other, without a hole. */
export function expectContiguous(from: Position, commits: readonly Commit[]): void {
  // Node's assert: this runs for every commit of the property tests, where expect() would take most of the time.
  let before = from;
  for (const commit of commits) {
    assert.deepEqual(commit.previous, before, 'a commit does not follow the one before it');
    assert.equal(commit.position.ordinal, before.ordinal + 1, 'an ordinal was left out');
    assert.equal(commit.position.epoch, before.epoch);
    assert.ok(commit.entries.length > 0, 'a commit has no entries');
    before = commit.position;
  }
}
