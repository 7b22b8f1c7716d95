import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { GetSubject } from './broker-harness.ts';
import { BreakableLog } from './feed-laws-log.ts';
import { FeedWorld, type Setup, type Step } from './feed-laws-world.ts';

const client = fc.nat(2);
const often = fc.oneof(
  { weight: 3, arbitrary: fc.constant(true) },
  { weight: 1, arbitrary: fc.constant(false) },
);
const instance = fc.constantFrom(0 as const, 1 as const);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      size: fc.integer({ min: 1, max: 5 }),
      through: instance,
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      do: fc.constant('connect' as const),
      client,
      through: instance,
      from: fc.constantFrom('latest' as const, 'earliest' as const),
      onGap: fc.boolean(),
      eager: often,
      pushed: fc.boolean(),
      parts: fc.constantFrom(0, 1, 2, 3, 3, 3),
      token: fc.oneof(
        { weight: 2, arbitrary: fc.constant('none' as const) },
        { weight: 5, arbitrary: fc.constant(0) },
        { weight: 3, arbitrary: fc.nat(12) },
      ),
      wait: often,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      client,
      frames: fc.integer({ min: 1, max: 6 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('disconnect' as const), client }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('trim' as const), keep: fc.nat(3) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('drop' as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('break' as const), through: instance }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('turns' as const), count: fc.nat(12) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.constantFrom(0, 1_000, 2_000),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('catchUp' as const) }) },
);

// Long runs: a loss is told in a few steps, but to hold a token and come back takes many.
const steps = fc.array(step, { minLength: 10, maxLength: 32, size: 'max' });

const setup: fc.Arbitrary<Setup> = fc.record({
  highWaterMark: fc.constantFrom(1, 2, 5, 1024),
  lingerMs: fc.constantFrom(0, 1_000),
  way: fc.constantFrom('plain' as const, 'prepare' as const, 'filter' as const, 'map' as const),
  slow: fc.boolean(),
  control: fc.boolean(),
});

/** How long a client may take to get what was appended, in milliseconds. */
const DEADLINE_MS = 5_000;

/** The same once a run has failed: what is left is to find a shorter one, and most of those wait in vain. */
const SHRINKING_DEADLINE_MS = 500;

/** What a subscriber sees, whatever is done to the log and to its connection. */
export function feedLaws(of: GetSubject, runs: number): void {
  test('no subscriber misses an entry without being told, or gets one twice, or out of order', async () => {
    const { log, peerLog } = of();
    const logs = [new BreakableLog(log), new BreakableLog(peerLog)] as const;
    let deadlineMs = DEADLINE_MS;
    await fc.assert(
      fc.asyncProperty(setup, steps, async (options, doing) => {
        try {
          await new FeedWorld(of(), logs, options, deadlineMs).run(doing);
        } catch (error) {
          deadlineMs = SHRINKING_DEADLINE_MS;
          throw error;
        }
      }),
      { numRuns: runs },
    );
  });

  test('live reads end with their last subscriber', async () => {
    const { log, peerLog } = of();
    const logs = [new BreakableLog(log), new BreakableLog(peerLog)] as const;
    await fc.assert(
      fc.asyncProperty(setup, steps, async (options, doing) => {
        await new FeedWorld(of(), logs, options, DEADLINE_MS).run(doing);
        await expect.poll(() => logs.map((each) => each.reads)).toEqual([0, 0]);
      }),
      { numRuns: Math.max(10, Math.floor(runs / 20)), endOnFailure: true },
    );
  });
}
