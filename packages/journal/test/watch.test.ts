import { cpSync } from 'node:fs';
import { announce, type Watch, watch } from '@brokerfeed/core';
import { journalBroker } from '@brokerfeed/journal';
import { expect, test } from 'vitest';
import { temporaryFolder } from './harness.ts';

// What is a journal's own. The laws that it shares with every broker are in @brokerfeed/conformance.

test.each(['a close', 'a crash'])('what a folder recovers after %s is no event', async (after) => {
  using folder = temporaryFolder();
  using copy = temporaryFolder();
  const before = journalBroker({ dir: folder.path, segmentBytes: 4096 });
  for (let count = 0; count < 100; count += 1) await before.log.append('t', `old ${count}`);
  if (after === 'a close') await before.close();
  // As the files lie now; the lock is that of the process which is gone.
  cpSync(folder.path, copy.path, { recursive: true, filter: (path) => !path.endsWith('lock') });
  await using broker = journalBroker({ dir: copy.path, segmentBytes: 4096 });
  await using watching = await watch(broker, 't');
  await broker.log.append('t', ['new', 'new too']);
  const item = await watching.next();
  expect(item).toMatchObject({ entry: { value: 'new', generation: 101 } });
  expect(await take(watching, 1)).toEqual(['new too']);
  expect(watching.tryNext()).toEqual({ kind: 'empty' });
  await before.close();
});

test('what is written as the broker closes comes to its watches before their end', async () => {
  using folder = temporaryFolder();
  const broker = journalBroker({ dir: folder.path });
  const both = await watch(broker, 't');
  const entries = await watch(broker, 't', { only: 'entries' });
  announce(broker, 't', 'said');
  const appends = ['a', 'b', 'c'].map((value) => broker.log.append('t', value));
  const closed = broker.close();
  await expect(broker.log.append('t', 'too late')).rejects.toMatchObject({ code: 'CLOSED' });
  expect(() => announce(broker, 't', 'too late')).toThrow(
    expect.objectContaining({ code: 'CLOSED' }),
  );
  await closed;
  expect((await Promise.all(appends)).map(({ ordinal }) => ordinal)).toEqual([1, 2, 3]);
  expect(await take(both, 5)).toEqual(['said', 'a', 'b', 'c', 'closed']);
  expect(await take(entries, 4)).toEqual(['a', 'b', 'c', 'closed']);
});

async function take(watching: Watch, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) {
    const next = await watching.next();
    if (next.kind === 'entry') texts.push(next.entry.value);
    else texts.push(next.kind === 'announcement' ? next.value : next.kind);
  }
  return texts;
}
