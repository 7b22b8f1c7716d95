import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { journalBroker } from '../src/index.ts';
import { thisProcess } from '../src/process-identity.ts';
import { startChild } from './child.ts';
import { temporaryFolder } from './harness.ts';

function lockFiles(dir: string): string[] {
  return readdirSync(dir).filter((name) => name.startsWith('lock'));
}

test('a second process is refused with the pid of the owner, and gets the folder once that is closed', async () => {
  using folder = temporaryFolder();
  await using owner = startChild('child-open.ts', folder.path);
  await owner.line('open 1');
  await using second = startChild('child-open.ts', folder.path);
  const refusal = await second.line('refused');
  expect(refusal).toContain('UNAVAILABLE');
  expect(refusal).toContain(`belongs to process ${owner.process.pid} `);
  expect(() => journalBroker({ dir: folder.path })).toThrow(`process ${owner.process.pid} `);
  owner.process.stdin?.end();
  await owner.line('closed');
  await using broker = journalBroker({ dir: folder.path });
  expect((await broker.log.append('a', 'mine')).ordinal).toBe(2);
});

test('after SIGKILL of the owner the next process takes over at once', async () => {
  using folder = temporaryFolder();
  await using owner = startChild('child-open.ts', folder.path);
  await owner.line('open 1');
  await owner.kill();
  await using next = startChild('child-open.ts', folder.path);
  await next.line('open 2');
  expect(() => journalBroker({ dir: folder.path })).toThrow(`process ${next.process.pid} `);
});

test('of many that take over from a dead owner at the same time, one gets the folder', async () => {
  using folder = temporaryFolder();
  const owner = startChild('child-open.ts', folder.path);
  await owner.line('open 1');
  await owner.kill();
  const takers = Array.from({ length: 4 }, () => startChild('child-open.ts', folder.path));
  try {
    const first = await Promise.all(
      takers.map((taker) => Promise.race([taker.line('open'), taker.line('refused')])),
    );
    expect(first.filter((line) => line.startsWith('open'))).toHaveLength(1);
    const [winner] = takers.filter((_, at) => first[at]?.startsWith('open'));
    for (const line of first.filter((one) => !one.startsWith('open'))) {
      expect(line).toContain(`process ${winner?.process.pid} `);
    }
  } finally {
    await Promise.all(takers.map((taker) => taker[Symbol.asyncDispose]()));
  }
  expect(lockFiles(folder.path)).toEqual(['lock']);
});

test.each([
  ['a pid that another process has now', { start: 'another start' }],
  ['a pid that nobody has', { pid: 2 ** 22 + 1 }],
  ['an owner that was killed inside a takeover', { pid: 2 ** 22 + 1, token: 'dead' }],
])('a lock of %s does not keep anybody out', async (_, stale) => {
  using folder = temporaryFolder();
  const dead = { ...thisProcess(), token: 'stale', ...stale };
  writeFileSync(join(folder.path, 'lock'), JSON.stringify(dead));
  writeFileSync(
    join(folder.path, `lock.takeover.${dead.token}`),
    JSON.stringify({ ...dead, token: 'taker' }),
  );
  await using broker = journalBroker({ dir: folder.path });
  await broker.log.append('a', 'x');
  expect(lockFiles(folder.path)).toEqual(['lock']);
});

test('a lock that says nothing, as after a power cut, is taken over', async () => {
  using folder = temporaryFolder();
  writeFileSync(join(folder.path, 'lock'), '');
  await using broker = journalBroker({ dir: folder.path });
  await broker.log.append('a', 'x');
});

test('an owner that we cannot see lives while it touches the lock', () => {
  using folder = temporaryFolder();
  const far = { ...thisProcess(), pid: 7, space: 'another host', token: 'far' };
  writeFileSync(join(folder.path, 'lock'), JSON.stringify(far));
  expect(() => journalBroker({ dir: folder.path })).toThrow('process 7 (another host)');
});

test('an owner that lost its lock stops appending', async () => {
  using folder = temporaryFolder();
  const timers: (() => void)[] = [];
  const clock = {
    now: () => Date.now(),
    after: (_: number, callback: () => void) => {
      timers.push(callback);
      return () => {};
    },
  };
  await using broker = journalBroker({ dir: folder.path, clock });
  await broker.log.append('a', 'x');
  writeFileSync(join(folder.path, 'lock'), JSON.stringify({ ...thisProcess(), token: 'other' }));
  for (const callback of timers.splice(0)) callback();
  await expect(broker.log.append('a', 'y')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await broker.close();
  expect(readFileSync(join(folder.path, 'lock'), 'utf8')).toContain('other');
});
