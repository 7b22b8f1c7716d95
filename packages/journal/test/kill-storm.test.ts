import type { Commit, Position } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { type JournalBroker, journalBroker, verify } from '../src/index.ts';
import { startChild } from './child.ts';
import { temporaryFolder } from './harness.ts';

const SOAK = Number(process.env.SOAK ?? 1);
/** 50 in all, over three policies; 1,000 with SOAK=20. */
const KILLS = { commit: 30, interval: 10, never: 10 } as const;
const TOPICS = ['a', 'b'];
const MAX_LINES_BEFORE_KILL = 400;

interface Known {
  readonly topic: string;
  readonly position: Position;
  readonly value: string;
}

test.each(['commit', 'interval', 'never'] as const)(
  'a process that appends with fsync "%s" may be killed at any moment',
  { timeout: 300_000 * SOAK },
  async (fsync) => {
    using folder = temporaryFolder();
    const values = new Map<string, string>();
    const held: Known[] = [];
    for (let kill = 0; kill < KILLS[fsync] * SOAK; kill += 1) {
      await using child = startChild('child-append.ts', folder.path, fsync, String(kill));
      await child.line('ready');
      await linesOf(child, 1 + Math.floor(Math.random() * MAX_LINES_BEFORE_KILL));
      await child.kill();
      const fresh = child.lines.flatMap(parse);
      for (const { topic, position, value } of fresh) {
        if (value !== '') values.set(`${topic} ${position.ordinal}`, value);
      }
      // The oldest and newest of each life stand for the rest, so that the work does not grow with the square of the kills.
      held.push(...fresh.slice(0, 3), ...fresh.slice(-20));
      await using broker = journalBroker({ dir: folder.path, fsync });
      await check(broker, values, [...held, ...fresh]);
    }
    expect(verify(folder.path).findings.filter(({ kind }) => kind === 'damage')).toEqual([]);
  },
);

/** Waits until the child has printed so many lines: the moment of the kill depends on its progress, not on a clock. */
function linesOf(child: ReturnType<typeof startChild>, count: number): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (child.lines.length < count) return;
      child.process.stdout?.off('data', look);
      resolve();
    };
    child.process.stdout?.on('data', look);
    look();
  });
}

/** A line that the kill cut is no claim. */
function parse(line: string): Known[] {
  const match = /^(ack|saw) (\{.*\})$/.exec(line);
  if (match === null) return [];
  try {
    return [JSON.parse(match[2] as string) as Known];
  } catch {
    return [];
  }
}

/**
 * Every position that a caller or a reader was given resumes, exactly after its own commit. Only what differs is given to
 * `expect`, which takes longer than the comparison: there are some hundred thousand of them.
 */
async function check(
  { log }: JournalBroker,
  values: ReadonlyMap<string, string>,
  known: readonly Known[],
): Promise<void> {
  const logs = new Map<string, Commit[]>();
  for (const topic of TOPICS) logs.set(topic, await readAll({ log }, topic));
  for (const { topic, position } of known) {
    const found = logs.get(topic)?.[position.ordinal - 1]?.position;
    if (!samePlace(found, position)) expect(found).toEqual(position);
  }
  for (const { topic, position } of known.slice(-20)) {
    const page = await log.page(topic, position, 1);
    expect(page.verdict).toBe('ok');
    if (page.verdict === 'ok') {
      expect(page.commits[0]).toEqual(logs.get(topic)?.[position.ordinal]);
    }
  }
  for (const [topic, commits] of logs) {
    for (const [at, commit] of commits.entries()) {
      const { position, entries } = commit;
      if (position.ordinal !== at + 1) expect(position.ordinal).toBe(at + 1);
      const value = values.get(`${topic} ${at + 1}`);
      if (value !== undefined && entries[0]?.value !== value) expect(entries[0]?.value).toBe(value);
    }
  }
}

function samePlace(a: Position | undefined, b: Position): boolean {
  return a?.epoch === b.epoch && a.id === b.id && a.ordinal === b.ordinal;
}

async function readAll({ log }: Pick<JournalBroker, 'log'>, topic: string): Promise<Commit[]> {
  const commits: Commit[] = [];
  let from: Position | 'earliest' = 'earliest';
  for (;;) {
    const page = await log.page(topic, from, 10_000);
    if (page.verdict !== 'ok') return expect.fail(page.verdict);
    commits.push(...page.commits);
    if (page.atTip) return commits;
    from = page.commits.at(-1)?.position ?? page.from;
  }
}
