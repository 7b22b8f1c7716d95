import { expect, test } from 'vitest';
import { startRedis } from '../../../test/support/redis.ts';
import { openTopic, type TestTopic, valuesOf } from './support.ts';

const KIB = 1024;

/** Reads a topic page by page. */
async function pagesOf(topic: TestTopic, limit: number): Promise<string[][]> {
  const pages: string[][] = [];
  for (let from = (await topic.log.bounds(topic.topic)).first; ; ) {
    const page = await topic.log.page(topic.topic, from, limit);
    if (page.verdict !== 'ok') throw new Error(page.verdict);
    pages.push(valuesOf(page.commits));
    const last = page.commits.at(-1);
    if (last === undefined || page.atTip) return pages;
    from = last.position;
  }
}

test.each<[string, number[]]>([
  ['small, then large', [...Array(300).fill(10), ...Array(40).fill(100 * KIB)]],
  ['large, then small', [...Array(40).fill(100 * KIB), ...Array(300).fill(10)]],
  ['large ones between small ones', [1, 2, 3, 4].flatMap(() => [10, 700 * KIB, 10, 400 * KIB, 10])],
  ['each larger than a page', Array(3).fill(1200 * KIB)],
])('commits of any size are read whole, in pages of about a MiB: %s', async (_, sizes) => {
  await using topic = openTopic({ maxEntryBytes: 2048 * KIB });
  const values = sizes.map((size, n) => `${n} ${'x'.repeat(size)}`);
  await topic.append(...values);
  const pages = await pagesOf(topic, 1000);
  expect(pages.flat()).toEqual(values);
  for (const page of pages) {
    expect(page.length).toBeGreaterThan(0);
    if (page.length > 1) expect(page.join('').length).toBeLessThanOrEqual(1024 * KIB);
  }
});

test('a page of small commits is as long as it may be', async () => {
  await using topic = openTopic();
  await topic.append(...Array.from({ length: 700 }, (_, n) => `${n}`));
  const pages = await pagesOf(topic, 600);
  expect(pages.map((page) => page.length)).toEqual([600, 100]);
});

test('large commits between small ones are not all read at once to make one page', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const large = Array.from({ length: 40 }, () => 'x'.repeat(256 * KIB));
  const start = await topic.tip();
  await topic.append('first', ...large, 'last');
  const used = await memoryOf(topic, 'used_memory');
  const page = await topic.log.page(topic.topic, start, 1000);
  expect(page).toMatchObject({ verdict: 'ok', atTip: false });
  expect((await memoryOf(topic, 'used_memory_peak')) - used).toBeLessThan(4 * KIB * KIB);
});

async function memoryOf({ client }: TestTopic, field: string): Promise<number> {
  return Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(await client.info('memory'))?.[1]);
}
