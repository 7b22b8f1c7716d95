import assert from 'node:assert/strict';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { WatchItem } from './watch-event.ts';
import { WatchRing } from './watch-ring.ts';

const steps = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ do: fc.constant('push' as const) }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant('take' as const) }) },
    {
      weight: 1,
      arbitrary: fc.record({ do: fc.constant('lag' as const), by: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant('lose' as const) }) },
  ),
  { maxLength: 60 },
);

test('whatever is pushed, lost and taken when: each event comes in its place, or is in the count that stands there', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), steps, (capacity, sequence) => {
      const ring = new WatchRing(capacity);
      const watcher = new Watcher();
      let written = 0;
      for (const step of sequence) {
        switch (step.do) {
          case 'push':
            ring.push({ kind: 'announcement', topic: 't', value: String(written) });
            written += 1;
            break;
          case 'lag':
            ring.lag(step.by);
            written += step.by;
            break;
          case 'lose':
            ring.lag(undefined);
            watcher.unknownAt.add(written);
            break;
          case 'take':
            watcher.see(ring.shift());
            break;
          default:
            step satisfies never;
        }
      }
      let taken = 0;
      for (let item = ring.shift(); item !== undefined; item = ring.shift()) {
        watcher.see(item);
        taken += 1;
      }
      watcher.end(written);
      assert.ok(taken <= capacity + 1, `${taken} items were held`);
    }),
    { numRuns: 3_000 },
  );
});

test('no more is dropped than must be', () => {
  const ring = new WatchRing(3);
  for (const value of ['a', 'b', 'c', 'd']) ring.push({ kind: 'announcement', topic: 't', value });
  const items = [0, 1, 2, 3, 4].map(() => ring.shift());
  expect(items.map((item) => (item?.kind === 'announcement' ? item.value : item))).toEqual([
    { kind: 'lagged', missed: 1 },
    'b',
    'c',
    'd',
    undefined,
  ]);
});

/** Knows which number may come next. */
class Watcher {
  /** Before which numbers a loss of unknown size was put in. It takes no numbers: those are all counted. */
  readonly unknownAt = new Set<number>();
  #next = 0;
  #seen = -1;
  #uncertain = false;

  see(item: WatchItem | undefined): void {
    if (item === undefined) return;
    if (item.kind === 'lagged') {
      if (item.missed === undefined) this.#uncertain = true;
      else {
        assert.ok(item.missed > 0);
        this.#next += item.missed;
      }
      return;
    }
    assert.ok(item.kind === 'announcement');
    const number = Number(item.value);
    this.#settle(number);
    this.#next = number + 1;
  }

  end(written: number): void {
    this.#settle(written);
  }

  /** An unknown loss is told where one was put in, and nowhere else; all other losses are counted to the unit. */
  #settle(number: number): void {
    const unknown = [...this.unknownAt].some((at) => at > this.#seen && at <= number);
    assert.equal(this.#uncertain, unknown, `before ${number}`);
    if (unknown) assert.ok(number >= this.#next);
    else assert.equal(number, this.#next);
    this.#uncertain = false;
    this.#seen = number;
  }
}
