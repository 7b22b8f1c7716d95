import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Commit, Loss } from './broker.ts';
import type { Position } from './position.ts';
import { Ring, type RingItem } from './ring.ts';
import { commitSlot } from './slot.ts';

const EPOCH = 'AAAAAAAAAAAA';
const OTHER = 'BBBBBBBBBBBB';

function at(ordinal: number, epoch = EPOCH, id = String(ordinal)): Position {
  return { epoch, id, ordinal };
}

function commitAfter(previous: Position, entries = 1, id?: string): Commit {
  const position = at(previous.ordinal + 1, previous.epoch, id);
  const values = Array.from({ length: entries }, (_, k) => `${position.ordinal}.${k}`);
  return { previous, position, entries: values.map((value) => ({ value, headers: {} })) };
}

/** A ring that began at a position and was given this many commits of one entry. */
function ringOf(from: Position, commits: number, highWaterMark: number): Ring {
  const ring = new Ring(from, highWaterMark);
  for (let n = 0; n < commits; n += 1) push(ring);
  return ring;
}

function push(ring: Ring, entries = 1, id?: string): void {
  ring.push(commitSlot('t', commitAfter(ring.tip, entries, id)));
}

function commitAt(ring: Ring, seq: number | undefined): Position | undefined {
  if (seq === undefined || seq === ring.end) return undefined;
  const item = ring.at(seq);
  return item.kind === 'commit' ? item.slot.commit.position : undefined;
}

describe('where a reader goes on', () => {
  // A ring that began after commit 10, saw 11 to 16, and keeps 14 to 16.
  const ring = ringOf(at(10), 6, 3);

  test.each<[string, Position, Position | 'end' | 'log']>([
    ['at the tip, nothing is to be read', at(16), 'end'],
    ['inside, the next commit', at(14), at(15)],
    ['before the oldest kept, that one', at(13), at(14)],
    ['one commit too far back, the log', at(12), 'log'],
    ['where the ring began, the log', at(10), 'log'],
    ['before the ring began, the log', at(9), 'log'],
    ['at the beginning, the log', at(0), 'log'],
    ['past the tip, the log', at(17), 'log'],
    ['far past the tip, the log', at(2 ** 52), 'log'],
    ['at the ordinal of the tip with another id, the log', at(16, EPOCH, '99'), 'log'],
    ['at an ordinal inside with another id, the log', at(14, EPOCH, '99'), 'log'],
    ['at the tip of another epoch, the log', at(16, OTHER), 'log'],
    ['inside another epoch, the log', at(14, OTHER), 'log'],
  ])('%s', (_, position, expected) => {
    const seq = ring.seqAfter(position);
    if (expected === 'log') expect(seq).toBeUndefined();
    else if (expected === 'end') expect(seq).toBe(ring.end);
    else expect(commitAt(ring, seq)).toEqual(expected);
  });

  test('an empty ring knows its own tip alone', () => {
    const empty = new Ring(at(5), 10);
    expect(empty.seqAfter(at(5))).toBe(empty.end);
    expect(empty.seqAfter(at(4))).toBeUndefined();
    expect(empty.seqAfter(at(6))).toBeUndefined();
  });
});

describe('across a gap', () => {
  test('commits before it are not proof of anything any more', () => {
    const ring = ringOf(at(0), 4, 100);
    ring.pushGap('forked', at(4, EPOCH, '77'));
    for (const ordinal of [0, 1, 2, 3, 4]) expect(ring.seqAfter(at(ordinal))).toBeUndefined();
    expect(ring.seqAfter(at(4, EPOCH, '77'))).toBe(ring.end);
  });

  test('commits after it are found, those of the same ordinal before it are not', () => {
    const ring = ringOf(at(0), 4, 100);
    ring.pushGap('forked', at(2));
    push(ring, 1, '33');
    push(ring, 1, '44');
    expect(ring.seqAfter(at(2))).toBe(ring.start + 5);
    expect(ring.seqAfter(at(3, EPOCH, '33'))).toBe(ring.start + 6);
    expect(ring.seqAfter(at(3))).toBeUndefined();
    expect(ring.seqAfter(at(1))).toBeUndefined();
  });

  test('a reader before it reads up to it', () => {
    const ring = ringOf(at(0), 2, 100);
    const seq = ring.seqAfter(at(1)) as number;
    ring.pushGap('trimmed', at(9));
    push(ring);
    const kinds = [ring.at(seq), ring.at(seq + 1), ring.at(seq + 2)].map((item) =>
      item.kind === 'gap' ? item.loss : item.slot.commit.position.ordinal,
    );
    expect(kinds).toEqual([2, 'trimmed', 10]);
  });

  test('a run ends before it', () => {
    const ring = ringOf(at(0), 3, 100);
    ring.pushGap('trimmed', at(9));
    push(ring);
    expect(ring.run(0).commits).toBe(3);
    expect(ring.run(0).end).toEqual(at(3));
    expect(ring.run(4).commits).toBe(1);
  });

  test('a run asked for earlier does not hide what came since', () => {
    const ring = ringOf(at(0), 1, 100);
    expect(ring.run(0).commits).toBe(1);
    push(ring);
    expect(ring.run(0).commits).toBe(2);
  });
});

describe('the high-water mark', () => {
  test('drops whole commits, oldest first', () => {
    const ring = new Ring(at(0), 5);
    for (const entries of [2, 2, 2]) push(ring, entries);
    expect(ring.start).toBe(1);
    expect(commitAt(ring, ring.start)).toEqual(at(2));
  });

  test('keeps the newest commit, however large', () => {
    const ring = new Ring(at(0), 3);
    push(ring, 2);
    push(ring, 50);
    expect([ring.start, ring.end]).toEqual([1, 2]);
    push(ring, 1);
    expect([ring.start, ring.end]).toEqual([2, 3]);
  });

  test('bounds what gaps take up too', () => {
    const ring = new Ring(at(0), 3);
    for (let n = 0; n < 100; n += 1) ring.pushGap('epoch', at(n, n % 2 === 0 ? OTHER : EPOCH));
    expect(ring.end - ring.start).toBeLessThanOrEqual(4);
  });
});

test('a ring is the end of a list, whatever it was given', () => {
  type Pushed = { readonly entries: number } | { readonly loss: Loss; readonly to: number };
  const pushes: fc.Arbitrary<Pushed>[] = [
    fc.record({ entries: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ loss: fc.constantFrom('trimmed', 'forked', 'epoch'), to: fc.nat(20) }),
  ];
  const list = fc.array(
    fc.oneof(
      { weight: 6, arbitrary: pushes[0] as never },
      { weight: 1, arbitrary: pushes[1] as never },
    ),
  );
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 12 }), list as fc.Arbitrary<Pushed[]>, (mark, all) => {
      const ring = new Ring(at(3), mark);
      const naive: RingItem[] = [];
      let dense: Commit[] = [];
      let fork = 0;
      for (const pushed of all) {
        if ('loss' in pushed) {
          fork += 1;
          ring.pushGap(pushed.loss, at(pushed.to, EPOCH, `${pushed.to}-${fork}`));
          naive.push({ kind: 'gap', loss: pushed.loss });
          dense = [];
        } else {
          const commit = commitAfter(ring.tip, pushed.entries, `${ring.tip.ordinal + 1}-${fork}`);
          ring.push(commitSlot('t', commit));
          naive.push({ kind: 'commit', slot: commitSlot('t', commit) });
          dense.push(commit);
        }
        expect(ring.end).toBe(naive.length);
      }
      const kept = naive.slice(ring.start);
      for (let seq = ring.start; seq < ring.end; seq += 1) {
        expect(shape(ring.at(seq))).toEqual(shape(naive[seq] as RingItem));
      }
      const entries = kept.reduce((sum, item) => sum + sizeOf(item), 0);
      if (kept.length > 1) expect(entries).toBeLessThanOrEqual(mark);
      // From every place that a reader may hold: exactly the commits after the newest gap that are kept, no others.
      const keptDense = dense.filter(
        (commit) => naive.findIndex((item) => same(item, commit)) >= ring.start,
      );
      for (const commit of dense) {
        const seq = ring.seqAfter(commit.previous);
        if (keptDense.includes(commit)) expect(commitAt(ring, seq)).toEqual(commit.position);
        else expect(seq).toBeUndefined();
      }
      expect(ring.seqAfter(ring.tip)).toBe(ring.end);
    }),
    { numRuns: 500 },
  );
});

function same(item: RingItem, commit: Commit): boolean {
  return item.kind === 'commit' && item.slot.commit.position.id === commit.position.id;
}

function shape(item: RingItem): unknown {
  return item.kind === 'gap' ? item.loss : item.slot.commit.position;
}

function sizeOf(item: RingItem): number {
  return item.kind === 'gap' ? 1 : item.slot.entries.length;
}
