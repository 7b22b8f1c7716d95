import { expect, test } from 'vitest';
import { Tally } from '../examples/orders/page/tally.ts';
import type { Order } from '../examples/orders/router.ts';

/** The order of this number, of the only till. */
function order(number: number): Order {
  return { id: `order-${number}`, item: 'Cortado', quantity: 1, receipt: { till: 'a', number } };
}

function makeTally(storage = new Map<string, string>()): Tally {
  return new Tally(
    {
      getItem: (key) => storage.get(key) ?? null,
      setItem: (key, value) => void storage.set(key, value),
    },
    'tally',
  );
}

test('the counters of the demo tell what was missed and what came twice', () => {
  const tally = makeTally();
  // The first one that comes: what its till placed before is nobody's loss.
  for (const number of [3, 4, 4, 7]) tally.take(order(number));
  expect(tally.counts).toEqual({ received: 4, missed: 2, repeated: 1 });
});

test('an order without a receipt is only received', () => {
  const tally = makeTally();
  for (let times = 0; times < 2; times += 1) tally.take({ id: 'x', item: 'Cocoa', quantity: 1 });
  expect(tally.counts).toEqual({ received: 2, missed: 0, repeated: 0 });
});

test('what a snapshot holds is not missed, and may come once more', () => {
  const tally = makeTally();
  tally.take(order(1));
  tally.takeSnapshot([order(2), order(3)]);
  for (const number of [3, 4]) tally.take(order(number));
  expect(tally.counts).toEqual({ received: 3, missed: 0, repeated: 0 });
  tally.take(order(3));
  expect(tally.counts).toMatchObject({ repeated: 1 });
});

test('counts go on after a reload', () => {
  const storage = new Map<string, string>();
  const before = makeTally(storage);
  before.take(order(1));
  before.keep();
  const after = makeTally(storage);
  after.take(order(3));
  expect(after.counts).toEqual({ received: 2, missed: 1, repeated: 0 });
});
