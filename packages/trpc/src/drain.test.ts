import { BrokerError } from '@brokerfeed/core';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock } from '../../core/test/support/manual-clock.ts';
import { Drain, type DrainMember } from './drain.ts';

/** A connection that notes when it was told what. It goes when it is told to, or only when it is closed, or only when cut. */
class Client implements DrainMember {
  readonly #drain: Drain;
  readonly #clock: ClockFromZero;
  readonly #leavesOn: 'move' | 'close' | 'cut';
  readonly told: (readonly [what: 'move' | 'close' | 'cut', at: number])[] = [];

  constructor(drain: Drain, clock: ClockFromZero, leavesOn: 'move' | 'close' | 'cut' = 'move') {
    this.#drain = drain;
    this.#clock = clock;
    this.#leavesOn = leavesOn;
    drain.add(this);
  }

  move(): void {
    this.#note('move');
  }

  close(): void {
    this.#note('close');
  }

  cut(): void {
    this.#note('cut');
  }

  #note(what: 'move' | 'close' | 'cut'): void {
    this.told.push([what, this.#clock.elapsed]);
    if (what === this.#leavesOn) this.#drain.delete(this);
  }

  get movedAt(): number {
    return this.told.find(([what]) => what === 'move')?.[1] ?? Number.NaN;
  }
}

class ClockFromZero extends ManualClock {
  readonly #start = this.now();

  get elapsed(): number {
    return this.now() - this.#start;
  }
}

function rig(): { clock: ClockFromZero; drain: Drain; over: number[] } {
  const clock = new ClockFromZero();
  const over: number[] = [];
  const drain = new Drain(() => over.push(clock.elapsed), clock);
  return { clock, drain, over };
}

test('every client has a slot of the time to itself, and moves at some moment in it', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 60 }),
      fc.integer({ min: 0, max: 60_000 }),
      async (count, overMs) => {
        const { clock, drain } = rig();
        const clients = Array.from({ length: count }, () => new Client(drain, clock));
        const report = drain.drain({ overMs });
        clock.advance(overMs);
        expect(await report).toEqual({ moved: count, closed: 0 });
        // Times are sums of fractions: they may be off by less than anybody could measure.
        for (const [index, { movedAt }] of clients.entries()) {
          expect(movedAt).toBeGreaterThan((overMs / count) * index - 0.001);
          expect(movedAt).toBeLessThan((overMs / count) * (index + 1) + 0.001);
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('two drains of as many clients do not keep step', async () => {
  const moments = [0, 1].map(() => {
    const { clock, drain } = rig();
    const clients = Array.from({ length: 20 }, () => new Client(drain, clock));
    void drain.drain();
    clock.advance(10_000);
    return clients.map(({ movedAt }) => movedAt);
  });
  expect(moments[0]).not.toEqual(moments[1]);
});

test('a client that does not move is closed after its grace, and cut where it does not answer to that', async () => {
  const { clock, drain, over } = rig();
  const deaf = new Client(drain, clock, 'close');
  const dead = new Client(drain, clock, 'cut');
  const gone = new Client(drain, clock);
  const report = drain.drain({ overMs: 3_000, graceMs: 500 });
  clock.advance(4_500);
  expect(await report).toEqual({ moved: 1, closed: 2 });
  expect(deaf.told).toEqual([
    ['move', deaf.movedAt],
    ['close', deaf.movedAt + 500],
  ]);
  expect(dead.told.at(-1)).toEqual(['cut', 4_500]);
  expect(gone.told).toHaveLength(1);
  expect(over).toEqual([3_000]);
});

test('a client that comes meanwhile is moved too, not at once, and in time', () => {
  for (let round = 0; round < 100; round += 1) {
    const { clock, drain } = rig();
    new Client(drain, clock, 'cut');
    void drain.drain({ overMs: 10_000 });
    clock.advance(2_000);
    const early = new Client(drain, clock);
    clock.advance(7_500);
    const late = new Client(drain, clock);
    clock.advance(500);
    expect(early.movedAt).toBeGreaterThanOrEqual(3_000);
    expect(early.movedAt).toBeLessThanOrEqual(10_000);
    expect(late.movedAt).toBe(10_000);
  }
});

test('clients that leave by themselves are not told, and the drain is over with the last', async () => {
  const { clock, drain, over } = rig();
  const clients = [new Client(drain, clock), new Client(drain, clock)];
  const report = drain.drain();
  for (const client of clients) drain.delete(client);
  expect(await report).toEqual({ moved: 2, closed: 0 });
  clock.advance(60_000);
  expect(clients.flatMap(({ told }) => told)).toEqual([]);
  expect(over).toEqual([0]);
});

test('without clients a drain is over at once, and who comes after it is told to go', async () => {
  const { clock, drain, over } = rig();
  expect(await drain.drain()).toEqual({ moved: 0, closed: 0 });
  expect(over).toEqual([0]);
  const late = new Client(drain, clock);
  clock.advance(0);
  expect(late.movedAt).toBe(0);
  expect(clock.waits).toEqual([]);
});

test('clients of before a drain are not part of its report, and a second call is the first', async () => {
  const { clock, drain } = rig();
  drain.delete(new Client(drain, clock));
  const first = drain.drain();
  expect(drain.drain({ overMs: 5 })).toBe(first);
  expect(await first).toEqual({ moved: 0, closed: 0 });
});

test('options are checked, and the sentence names the bad one', () => {
  const { drain } = rig();
  for (const name of ['overMs', 'graceMs'] as const) {
    for (const value of [-1, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER, '1' as never]) {
      expect(() => drain.drain({ [name]: value })).toThrow(BrokerError);
      expect(() => drain.drain({ [name]: value })).toThrow(new RegExp(`^${name} is `));
    }
  }
});
