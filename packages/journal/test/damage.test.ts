import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Position } from '@brokerfeed/core';
import { describe, expect, test } from 'vitest';
import { bundled } from '../../../test/support/bundle.ts';
import { type JournalOptions, journalBroker, verify } from '../src/index.ts';
import { type TemporaryFolder, temporaryFolder } from './harness.ts';
import { eventLog } from './support-logger.ts';

const SMALL = { segmentBytes: 4096 };
const COMMITS = 100;
const CLI = new URL('../src/cli.ts', import.meta.url);

/** A folder of several sealed segments, closed. */
async function filled(options: Partial<JournalOptions> = {}): Promise<{
  folder: TemporaryFolder;
  positions: Position[];
}> {
  const folder = temporaryFolder();
  await using broker = journalBroker({ dir: folder.path, ...SMALL, ...options });
  const positions: Position[] = [];
  for (let count = 1; count <= COMMITS; count += 1) {
    positions.push(await broker.log.append('a', `value ${count} ${'x'.repeat(100)}`));
  }
  return { folder, positions };
}

function segmentsOf(folder: TemporaryFolder): string[] {
  const dir = join(folder.path, 'segments');
  return readdirSync(dir)
    .sort()
    .map((name) => join(dir, name));
}

function flip(file: string, offset: number): void {
  const bytes = readFileSync(file);
  bytes[offset] = (bytes[offset] as number) ^ 1;
  writeFileSync(file, bytes);
}

/** Forgets the caches, so that opening has to read everything. */
function dropCaches(folder: TemporaryFolder): void {
  for (const name of ['checkpoints', 'indexes']) {
    rmSync(join(folder.path, name), { recursive: true, force: true });
  }
}

async function readAll(
  folder: TemporaryFolder,
  options: Partial<JournalOptions> = {},
): Promise<string[]> {
  await using broker = journalBroker({ dir: folder.path, ...SMALL, ...options });
  const values: string[] = [];
  let from: Position | 'earliest' = 'earliest';
  for (;;) {
    const page = await broker.log.page('a', from, 30);
    if (page.verdict !== 'ok') return expect.fail(page.verdict);
    for (const { entries } of page.commits) values.push(entries[0]?.value ?? '');
    if (page.atTip) return values;
    from = page.commits.at(-1)?.position ?? page.from;
  }
}

describe('a flipped bit', () => {
  test.each([0, 5, 8, 9, 50, 700, -2, -1])(
    'at byte %i of a sealed segment is an error that names file and place',
    async (place) => {
      const { folder } = await filled();
      using _ = folder;
      const file = segmentsOf(folder)[1] as string;
      const size = statSync(file).size;
      flip(file, (place + size) % size);
      dropCaches(folder);
      expect(() => journalBroker({ dir: folder.path })).toThrow(
        expect.objectContaining({
          code: 'DAMAGED',
          message: expect.stringContaining(`${file} at byte`),
        }),
      );
      expect(segmentsOf(folder)).toContain(file);
      expect(statSync(file).size).toBe(size);
    },
  );

  test('in a sealed segment that opening need not read is found when it is read', async () => {
    const { folder } = await filled();
    using _ = folder;
    const file = segmentsOf(folder)[1] as string;
    flip(file, 700);
    await expect(readAll(folder)).rejects.toMatchObject({
      code: 'DAMAGED',
      message: expect.stringContaining(`${file} at byte`),
    });
  });

  test('before a synced commit of the active segment is an error, and changes nothing', async () => {
    const { folder } = await filled();
    using _ = folder;
    const file = segmentsOf(folder).at(-1) as string;
    dropCaches(folder);
    const lines = readFileSync(file, 'utf8').split('\n');
    const target = (lines[0] ?? '').length + 30;
    flip(file, target);
    const size = statSync(file).size;
    expect(() => journalBroker({ dir: folder.path })).toThrow(
      expect.objectContaining({ code: 'DAMAGED' }),
    );
    expect(statSync(file).size).toBe(size);
  });

  test('in the last line of the active segment is a torn tail: parked, cut off, and the rest served', async () => {
    const { folder } = await filled();
    using _ = folder;
    const file = segmentsOf(folder).at(-1) as string;
    dropCaches(folder);
    const torn = readFileSync(file).subarray(lastLineStart(file));
    flip(file, statSync(file).size - 20);
    const { logger, events } = eventLog();
    expect(await readAll(folder, { logger })).toHaveLength(COMMITS - 1);
    expect(events).toContain('journal.torn-tail');
    const [parked] = readdirSync(join(folder.path, 'quarantine'));
    expect(readFileSync(join(folder.path, 'quarantine', parked as string))).toHaveLength(
      torn.length,
    );
  });
});

function lastLineStart(file: string): number {
  const bytes = readFileSync(file);
  return bytes.lastIndexOf(0x0a, bytes.length - 2) + 1;
}

test('a last line without its line feed is torn, although its JSON parses', async () => {
  const { folder } = await filled();
  using _ = folder;
  const file = segmentsOf(folder).at(-1) as string;
  dropCaches(folder);
  writeFileSync(file, readFileSync(file).subarray(0, -1));
  expect(await readAll(folder)).toHaveLength(COMMITS - 1);
});

test('a position of a commit that was torn off is refused, also when another commit has its ordinal', async () => {
  const { folder, positions } = await filled();
  using _ = folder;
  const file = segmentsOf(folder).at(-1) as string;
  dropCaches(folder);
  writeFileSync(file, readFileSync(file).subarray(0, -1));
  await using broker = journalBroker({ dir: folder.path });
  const lost = positions.at(-1) as Position;
  expect((await broker.log.page('a', lost, 1)).verdict).toBe('forked');
  const instead = await broker.log.append('a', 'instead');
  expect(instead.ordinal).toBe(lost.ordinal);
  expect((await broker.log.page('a', lost, 1)).verdict).toBe('forked');
  expect((await broker.log.page('a', positions.at(-2) as Position, 1)).verdict).toBe('ok');
});

test('a sealed segment that is missing in the middle is an error', async () => {
  const { folder } = await filled();
  using _ = folder;
  const file = segmentsOf(folder)[1] as string;
  rmSync(file);
  expect(() => journalBroker({ dir: folder.path })).toThrow(
    expect.objectContaining({ code: 'DAMAGED' }),
  );
  dropCaches(folder);
  expect(() => journalBroker({ dir: folder.path })).toThrow(
    expect.objectContaining({ code: 'DAMAGED' }),
  );
});

test('the newest segment missing is an error while a checkpoint knows it', async () => {
  const { folder } = await filled();
  using _ = folder;
  rmSync(segmentsOf(folder).at(-1) as string);
  expect(() => journalBroker({ dir: folder.path })).toThrow(
    expect.objectContaining({ code: 'DAMAGED' }),
  );
});

describe('caches', () => {
  test.each(['checkpoints', 'indexes'])('deleted %s are rebuilt, with a log line', async (name) => {
    const { folder } = await filled();
    using _ = folder;
    rmSync(join(folder.path, name), { recursive: true });
    const { logger, events } = eventLog();
    expect(await readAll(folder, { logger })).toHaveLength(COMMITS);
    expect(events).toContain(name === 'indexes' ? 'journal.index.rebuilt' : 'journal.rebuild');
    expect(readdirSync(join(folder.path, name)).length).toBeGreaterThan(0);
  });

  test.each(['checkpoints', 'indexes'])('corrupt %s are rebuilt, with a log line', async (name) => {
    const { folder } = await filled();
    using _ = folder;
    for (const file of readdirSync(join(folder.path, name)))
      flip(join(folder.path, name, file), 40);
    const { logger, events } = eventLog();
    expect(await readAll(folder, { logger })).toHaveLength(COMMITS);
    expect(events).toContain(name === 'indexes' ? 'journal.index.rebuilt' : 'journal.rebuild');
  });

  test('a journal that lost its name takes it from a segment', async () => {
    const { folder, positions } = await filled();
    using _ = folder;
    rmSync(join(folder.path, 'journal.json'));
    await using broker = journalBroker({ dir: folder.path });
    expect((await broker.log.page('a', positions[3] as Position, 1)).verdict).toBe('ok');
  });

  test('positions, keys and epochs are the same with and without caches', async () => {
    const { folder, positions } = await filled();
    using _ = folder;
    const told: string[] = [];
    for (const drop of [false, true]) {
      if (drop) dropCaches(folder);
      await using broker = journalBroker({ dir: folder.path, ...SMALL });
      const repeated = await broker.log.append('b', 'once', { idempotencyKey: 'k' });
      told.push(
        JSON.stringify([repeated, await broker.log.page('a', positions[50] as Position, 2)]),
      );
    }
    expect(told[0]).toBe(told[1]);
  });
});

describe('verify', () => {
  test('says of a folder without a journal that there is none', () => {
    using folder = temporaryFolder();
    expect(verify(folder.path).findings).toMatchObject([
      { kind: 'damage', message: 'the folder holds no journal' },
    ]);
  });

  test('a sound journal has no findings, and is not changed', async () => {
    const { folder } = await filled();
    using _ = folder;
    const before = fingerprint(folder.path);
    const report = verify(folder.path);
    expect(report.findings).toEqual([]);
    expect([report.entries, report.topics]).toEqual([COMMITS, 1]);
    expect(fingerprint(folder.path)).toBe(before);
  });

  test('damage is found with its file and place, and the command says so by its exit code', async () => {
    const { folder } = await filled();
    using _ = folder;
    const run = () =>
      spawnSync(process.execPath, [bundled(CLI), 'verify', folder.path], { encoding: 'utf8' });
    expect(run()).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ok: /) });
    const file = segmentsOf(folder)[1] as string;
    flip(file, 700);
    const before = fingerprint(folder.path);
    const [finding] = verify(folder.path).findings;
    expect(finding).toMatchObject({ kind: 'damage', file });
    expect(run()).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(`damage ${file} at byte `),
    });
    expect(fingerprint(folder.path)).toBe(before);
  });

  test('a torn end, a broken checkpoint and a broken index are told and are no damage', async () => {
    const { folder } = await filled();
    using _ = folder;
    const file = segmentsOf(folder).at(-1) as string;
    writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.from('0123')]));
    const checkpoints = join(folder.path, 'checkpoints');
    flip(join(checkpoints, readdirSync(checkpoints)[0] as string), 40);
    const indexes = join(folder.path, 'indexes');
    flip(join(indexes, readdirSync(indexes)[0] as string), 40);
    const kinds = verify(folder.path).findings.map(({ kind }) => kind);
    expect(kinds.sort()).toEqual(['cache', 'cache', 'torn']);
  });

  test('a checkpoint that says something else than the segments is damage', async () => {
    const { folder } = await filled();
    using other = (await filled()).folder;
    using _ = folder;
    const checkpoints = join(folder.path, 'checkpoints');
    const file = join(checkpoints, readdirSync(checkpoints).at(-1) as string);
    const { encodeLine } = await import('../src/line.ts');
    const text = JSON.parse(readFileSync(file, 'utf8').slice(9)) as { topics: [string, string][] };
    (text.topics[0] as [string, string])[1] = 'AAAAAAAAAAAA';
    writeFileSync(file, encodeLine(JSON.stringify(text)));
    expect(verify(folder.path).findings).toMatchObject([{ kind: 'damage', file }]);
    expect(verify(other.path).findings).toEqual([]);
  });
});

function fingerprint(dir: string): string {
  return execFileSync('sh', ['-c', 'find . -type f | sort | xargs sha256sum'], {
    cwd: dir,
    encoding: 'utf8',
  });
}
