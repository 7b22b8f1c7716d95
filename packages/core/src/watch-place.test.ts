import assert from 'node:assert/strict';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { settled } from '../test/support/feed-rig.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import { ScriptedLog } from '../test/support/scripted-log.ts';
import { announce, type Watch, type WatchItem, watch } from './index.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';

// What comes first is decided by place: an event, a loss, the end and a deadline each stand where they came.

const T = 'orders';

type Taken =
  | Awaited<ReturnType<Watch['next']>>
  | ReturnType<Watch['tryNext']>
  | { readonly kind: 'timeout' };

const DEADLINE_MS = 10;

const steps = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ do: fc.constant('announce' as const) }) },
    {
      weight: 5,
      arbitrary: fc.record({
        do: fc.constant('append' as const),
        size: fc.integer({ min: 1, max: 4 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('delete the topic' as const) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('look' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('wait so long' as const) }) },
    { weight: 2, arbitrary: fc.record({ do: fc.constant('let time pass' as const) }) },
  ),
  { maxLength: 40, size: 'max' },
);

test('however it is asked, each event comes in its place, or is in the count that stands there', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 6 }), steps, async (capacity, sequence) => {
      const clock = new ManualClock();
      const store = memoryStore();
      await using broker = memoryBroker({ store });
      await using watching = await watch(broker, T, { capacity, clock, lingerMs: 0 });
      const taken: Promise<Taken>[] = [];
      const lostBefore = new Set<number>();
      let written = 0;
      for (const step of sequence) {
        switch (step.do) {
          case 'announce':
            announce(broker, T, String(written));
            written += 1;
            break;
          case 'append':
            await broker.log.append(
              T,
              Array.from({ length: step.size }, (_, index) => String(written + index)),
            );
            written += step.size;
            // So that it arrives before what comes next: the two sources have no order of their own.
            await settled();
            break;
          case 'delete the topic':
            store.drop(T);
            lostBefore.add(written);
            await settled();
            break;
          case 'look':
            taken.push(Promise.resolve(watching.tryNext()));
            break;
          case 'wait':
            taken.push(watching.next());
            break;
          case 'wait so long':
            taken.push(watching.next({ timeoutMs: DEADLINE_MS }));
            break;
          case 'let time pass':
            clock.advance(DEADLINE_MS);
            break;
          default:
            step satisfies never;
        }
      }
      watching.close();
      let last: Taken = watching.tryNext();
      for (; last.kind !== 'closed'; last = watching.tryNext()) taken.push(Promise.resolve(last));
      assertInPlace(await Promise.all(taken), written, lostBefore);
    }),
    { numRuns: 120 },
  );
});

test('a loss of the log stands between what came before it and what comes after it', async () => {
  const store = memoryStore();
  await using broker = memoryBroker({ store });
  await using watching = await watch(broker, T);
  await broker.log.append(T, ['a', 'b']);
  await settled();
  store.drop(T);
  await settled();
  await broker.log.append(T, 'of the new topic');
  await settled();
  announce(broker, T, 'said');
  expect(drain(watching)).toEqual(['a', 'b', 'lagged unknown', 'of the new topic', 'said']);
});

test('a lag is told again and again, each time in its place, and the end comes after the last of it', async () => {
  await using broker = memoryBroker();
  const watching = await watch(broker, T, { capacity: 2, only: 'announcements' });
  const say = (...values: string[]): void => {
    for (const value of values) announce(broker, T, value);
  };
  say('0', '1', '2');
  expect(textOf(watching.tryNext())).toBe('lagged 1');
  say('3', '4');
  // What is dropped behind a lag that was told already is another one, before the oldest that is left.
  expect(drain(watching)).toEqual(['lagged 2', '3', '4']);
  say('5', '6', '7', '8');
  watching.close();
  say('9');
  expect(drain(watching)).toEqual(['lagged 2', '7', '8', 'closed']);
});

test('an event and a deadline in one turn: what came first is the answer, and the other is not lost', async () => {
  const clock = new ManualClock();
  await using broker = memoryBroker();
  await using watching = await watch(broker, T, { clock, only: 'announcements' });
  const inTime = watching.next({ timeoutMs: DEADLINE_MS });
  await clock.untilWait(DEADLINE_MS);
  announce(broker, T, 'in time');
  clock.advance(DEADLINE_MS);
  expect(textOf(await inTime)).toBe('in time');
  const late = watching.next({ timeoutMs: DEADLINE_MS });
  await clock.untilWait(DEADLINE_MS);
  clock.advance(DEADLINE_MS);
  announce(broker, T, 'late');
  expect(await late).toEqual({ kind: 'timeout' });
  expect(drain(watching)).toEqual(['late']);
});

test('a live read that breaks and is mended costs a watch nothing: no event, no lag, no repeat', async () => {
  const clock = new ManualClock();
  await using broker = memoryBroker();
  const log = new ScriptedLog(broker.log);
  await using watching = await watch({ ...broker, log }, T, { clock });
  await log.untilReads(1);
  await broker.log.append(T, 'before');
  await settled();
  log.breakReads();
  await clock.untilWait(250);
  await broker.log.append(T, ['meanwhile', 'meanwhile too']);
  clock.advance(250);
  await log.untilReads(1);
  await broker.log.append(T, 'after');
  await settled();
  expect(drain(watching)).toEqual(['before', 'meanwhile', 'meanwhile too', 'after']);
});

/** Every number comes once and in order, or is in the count that stands where it would have come. */
function assertInPlace(taken: readonly Taken[], written: number, lostBefore: Set<number>): void {
  let next = 0;
  let lastSeen = -1;
  let unknown = false;
  const settle = (number: number): void => {
    const lost = [...lostBefore].some((at) => at > lastSeen && at <= number);
    assert.equal(unknown, lost, `a loss of unknown size before ${number}`);
    if (lost) assert.ok(number >= next);
    else assert.equal(number, next);
    unknown = false;
  };
  for (const item of taken) {
    if (item.kind === 'lagged') {
      if (item.missed === undefined) unknown = true;
      else next += item.missed;
    } else if (item.kind === 'entry' || item.kind === 'announcement') {
      const number = Number(textOf(item));
      settle(number);
      lastSeen = number;
      next = number + 1;
    }
  }
  settle(written);
}

/** What is there now, up to a close. */
function drain(watching: Watch): string[] {
  const texts: string[] = [];
  for (;;) {
    const next = watching.tryNext();
    if (next.kind === 'empty') return texts;
    texts.push(textOf(next));
    if (next.kind === 'closed') return texts;
  }
}

function textOf(taken: Taken | WatchItem): string {
  switch (taken.kind) {
    case 'entry':
      return taken.entry.value;
    case 'announcement':
      return taken.value;
    case 'lagged':
      return `lagged ${taken.missed ?? 'unknown'}`;
    default:
      return taken.kind;
  }
}
