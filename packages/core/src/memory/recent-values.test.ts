import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Broker } from '../broker.ts';
import type { Position } from '../position.ts';
import { memoryBroker } from './index.ts';

const TOPIC = 'prices';

/** What a service does that keeps its recent values: the ones after a position, or why those are not to be had. */
async function since(broker: Broker, position: Position | undefined): Promise<string[] | string> {
  const page = await broker.log.page(TOPIC, position ?? 'latest', 1_000);
  if (page.verdict !== 'ok') return page.verdict;
  return page.commits.flatMap(({ entries }) => entries.map(({ value }) => value));
}

test('of a buffer of recent values, what was missed since a position comes, and one that has left it is told by name', async () => {
  await using broker = memoryBroker({ retention: { maxEntries: 3 } });
  const start = (await broker.log.bounds(TOPIC)).last;
  expect(await since(broker, start)).toEqual([]);
  const positions: Position[] = [];
  for (const value of ['a', 'b', 'c', 'd', 'e'])
    positions.push(await broker.log.append(TOPIC, value));
  expect(positions.map(({ id }) => Number(id))).toEqual([1, 2, 3, 4, 5]);
  const answers = await Promise.all(
    [undefined, start, ...positions].map((position) => since(broker, position)),
  );
  expect(answers).toEqual([[], 'trimmed', 'trimmed', ['c', 'd', 'e'], ['d', 'e'], ['e'], []]);
  await using restarted = memoryBroker({ retention: { maxEntries: 3 } });
  expect(await since(restarted, positions.at(-1))).toBe('epoch');
});

test('whatever the size of the buffer, its answer is exact for every position there was', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 0, max: 30 }),
      async (size, count) => {
        await using broker = memoryBroker({ retention: { maxEntries: size } });
        const positions = [(await broker.log.bounds(TOPIC)).last];
        for (let n = 1; n <= count; n += 1)
          positions.push(await broker.log.append(TOPIC, String(n)));
        const oldest = Math.max(0, count - size);
        for (const [seen, position] of positions.entries()) {
          const missed = Array.from({ length: count - seen }, (_, at) => String(seen + at + 1));
          expect(await since(broker, position)).toEqual(seen < oldest ? 'trimmed' : missed);
        }
      },
    ),
    { numRuns: 60 },
  );
});
