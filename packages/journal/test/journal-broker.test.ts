import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Position } from '@brokerfeed/core';
import { describe, expect, test } from 'vitest';
import { type JournalBroker, type JournalOptions, journalBroker } from '../src/index.ts';
import { HandClock } from './crash-history.ts';
import { temporaryFolder } from './harness.ts';

describe('a commit that spans topics', () => {
  test('is one line of one segment, with one sequence and a position in each topic', async () => {
    using folder = temporaryFolder();
    await using broker = journalBroker({ dir: folder.path });
    const { log } = broker;
    await log.append('a', 'before');
    const { sequence, positions } = await log.appendAll([
      { topic: 'a', value: ['1', '2'], headers: { kind: 'pair' } },
      { topic: 'b', value: '3' },
    ]);
    expect(sequence).toBe(2);
    expect(positions.map(({ ordinal }) => ordinal)).toEqual([2, 1]);
    const page = await log.page('a', positions[0] as Position, 0);
    expect(page.verdict).toBe('ok');
    const [, pair] = (await commits(log, 'a')) as [unknown, { values: string[]; kind: string }];
    expect(pair).toEqual({ values: ['1', '2'], kind: 'pair' });
    const [segment] = readdirSync(join(folder.path, 'segments'));
    const lines = readFileSync(join(folder.path, 'segments', segment as string), 'utf8')
      .trim()
      .split('\n');
    expect(lines).toHaveLength(3);
  });

  test('is repeated harmlessly by its key, and refused with other values', async () => {
    using folder = temporaryFolder();
    const options: JournalOptions = { dir: folder.path };
    const appends = [
      { topic: 'a', value: '1' },
      { topic: 'b', value: '2' },
    ];
    let first: unknown;
    {
      await using broker = journalBroker(options);
      first = await broker.log.appendAll(appends, { idempotencyKey: 'k' });
      expect(await broker.log.appendAll(appends, { idempotencyKey: 'k' })).toEqual(first);
    }
    await using broker = journalBroker(options);
    const { log } = broker;
    expect(await log.appendAll(appends, { idempotencyKey: 'k' })).toMatchObject(first as object);
    const other = log.appendAll([{ topic: 'a', value: '1' }], { idempotencyKey: 'k' });
    await expect(other).rejects.toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
    expect((await log.bounds('a')).last.ordinal).toBe(1);
  });

  test('is known by its key for the window, also in a folder that is opened anew', async () => {
    using folder = temporaryFolder();
    const clock = new HandClock();
    const options: JournalOptions = { dir: folder.path, clock, idempotencyWindowMs: 1000 };
    const appends = ['a', 'b'].map((topic) => ({ topic, value: 'x' }));
    const ordinals = async ({ log }: JournalBroker): Promise<number[]> => {
      const { positions } = await log.appendAll(appends, { idempotencyKey: 'k' });
      const single = await log.append('c', 'x', { idempotencyKey: 'k' });
      return [...positions, single].map(({ ordinal }) => ordinal);
    };
    {
      await using broker = journalBroker(options);
      expect(await ordinals(broker)).toEqual([1, 1, 1]);
      clock.pass(999);
      expect(await ordinals(broker)).toEqual([1, 1, 1]);
    }
    await using broker = journalBroker(options);
    expect(await ordinals(broker)).toEqual([1, 1, 1]);
    clock.pass(1);
    expect(await ordinals(broker)).toEqual([2, 2, 2]);
  });

  test.each([
    ['no topic', []],
    [
      'a topic twice',
      [
        { topic: 'a', value: '1' },
        { topic: 'a', value: '2' },
      ],
    ],
    [
      'a bad value among good ones',
      [
        { topic: 'a', value: '1' },
        { topic: 'b', value: 7 as never },
      ],
    ],
  ])('of %s is refused, and nothing is written', async (_, appends) => {
    using folder = temporaryFolder();
    await using broker = journalBroker({ dir: folder.path });
    await expect(broker.log.appendAll(appends)).rejects.toMatchObject({ code: 'VALUE_INVALID' });
    expect((await broker.log.bounds('a')).last.ordinal).toBe(0);
  });
});

async function commits(
  log: ReturnType<typeof journalBroker>['log'],
  topic: string,
): Promise<{ values: string[]; kind: string | undefined }[]> {
  const page = await log.page(topic, 'earliest', 100);
  if (page.verdict !== 'ok') return expect.fail(page.verdict);
  return page.commits.map(({ entries }) => ({
    values: entries.map(({ value }) => value),
    kind: entries[0]?.headers.kind,
  }));
}

test('topics, positions and keys are the same after the folder is opened again', async () => {
  using folder = temporaryFolder();
  const held: Position[] = [];
  for (let opening = 0; opening < 5; opening += 1) {
    await using broker = journalBroker({ dir: folder.path });
    const { log } = broker;
    for (const position of held) expect((await log.page('a', position, 1)).verdict).toBe('ok');
    held.push(await log.append('a', 'x'), await log.append('a', 'y', { idempotencyKey: 'k' }));
    expect((await log.bounds('a')).last.ordinal).toBe(opening + 2);
  }
  expect(new Set(held.map(({ epoch }) => epoch)).size).toBe(1);
  expect(held.filter(({ ordinal }) => ordinal === 2)).toEqual(
    [held[1], held[1], held[1], held[1], held[1]].slice(0, 5),
  );
});

test('a reader of a topic that was never written to resumes after the folder is opened again', async () => {
  using folder = temporaryFolder();
  let before: Position;
  {
    await using broker = journalBroker({ dir: folder.path });
    before = (await broker.log.bounds('a')).last;
  }
  await using broker = journalBroker({ dir: folder.path });
  expect((await broker.log.page('a', before, 1)).verdict).toBe('ok');
});

test('an entry above maxEntryBytes is refused, and one of just that size is not', async () => {
  using folder = temporaryFolder();
  await using broker = journalBroker({ dir: folder.path, maxEntryBytes: 100 });
  await broker.log.append('a', 'é'.repeat(50));
  const larger = broker.log.append('a', `${'é'.repeat(50)}x`);
  await expect(larger).rejects.toMatchObject({ code: 'ENTRY_TOO_LARGE' });
});

test.each([
  ['dir', { dir: '' }],
  ['fsync', { fsync: 'always' }],
  ['segmentBytes', { segmentBytes: 10 }],
  ['retention.maxBytes', { retention: { maxBytes: 0 } }],
  ['retention', { retention: null }],
  ['archiveDir', { archiveDir: '' }],
])('a bad %s is refused by name, and nothing is made', (name, options) => {
  using folder = temporaryFolder();
  const dir = join(folder.path, 'new');
  expect(() => journalBroker({ dir, ...options } as JournalOptions)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringContaining(`${name} `),
    }),
  );
  expect(existsSync(dir)).toBe(false);
});

/** A disk of its own, where this process may mount one. */
function tinyDisk(): (Disposable & { path: string }) | undefined {
  const folder = temporaryFolder();
  const path = join(folder.path, 'disk');
  mkdirSync(path);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', path], { stdio: 'ignore' });
  } catch {
    folder[Symbol.dispose]();
    return undefined;
  }
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', ['-l', path]);
      folder[Symbol.dispose]();
    },
  };
}

test('a full disk rejects appends, loses nothing, and after space returns appending goes on', async ({
  skip,
}) => {
  using disk = tinyDisk();
  if (disk === undefined)
    return skip(
      'mounting is not allowed here; write-faults.test.ts has the same with a made error',
    );
  const ballast = join(disk.path, 'ballast');
  writeFileSync(ballast, Buffer.alloc(64 * 1024));
  const written: string[] = [];
  const options: JournalOptions = { dir: join(disk.path, 'journal'), segmentBytes: 32 * 1024 };
  {
    await using broker = journalBroker(options);
    const { log } = broker;
    let failure: unknown;
    for (let count = 0; failure === undefined && count < 1000; count += 1) {
      const value = `${count} ${'x'.repeat(1000)}`;
      await log.append('a', value).then(
        () => void written.push(value),
        (error: unknown) => {
          failure = error;
        },
      );
    }
    expect(failure).toMatchObject({ code: 'UNAVAILABLE' });
    await expect(log.append('a', 'y'.repeat(5000))).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await read(log)).toEqual(written);
    rmSync(ballast);
    await log.append('a', 'after');
    written.push('after');
    expect(await read(log)).toEqual(written);
  }
  await using broker = journalBroker(options);
  expect(await read(broker.log)).toEqual(written);
});

test('a meter and a logger that throw keep nothing from being written and read', async () => {
  using folder = temporaryFolder();
  const fail = (): never => {
    throw new Error('the disk of the logs is full');
  };
  await using broker = journalBroker({
    dir: folder.path,
    logger: { debug: fail, info: fail, warn: fail, error: fail },
    meter: { count: fail, record: fail },
  });
  await broker.log.append('a', '1');
  await broker.log.append('a', '2');
  expect(await read(broker.log)).toEqual(['1', '2']);
});

async function read(log: ReturnType<typeof journalBroker>['log']): Promise<string[]> {
  return (await commits(log, 'a')).flatMap(({ values }) => values).concat(await rest(log));
}

/** What comes after the first hundred commits. */
async function rest(log: ReturnType<typeof journalBroker>['log']): Promise<string[]> {
  const first = await log.page('a', 'earliest', 100);
  if (first.verdict !== 'ok' || first.atTip) return [];
  const page = await log.page('a', first.commits.at(-1)?.position as Position, 1000);
  return page.verdict === 'ok' ? page.commits.map(({ entries }) => entries[0]?.value ?? '') : [];
}
