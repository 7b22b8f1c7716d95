import type { Commit, Position, Sink } from '@brokerfeed/core';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Arrivals } from './arrivals.ts';
import type { CommitNotice } from './commit-codec.ts';
import type { Watch } from './live-reader.ts';

const EPOCH = 'AAAAAAAAAAAA';

function place(ordinal: number): Position {
  return { epoch: EPOCH, id: ordinal === 0 ? '0-0' : `1000-${ordinal}`, ordinal };
}

function commitOf(ordinal: number): Commit {
  const entries = [{ value: `v${ordinal}`, headers: {} }];
  return { previous: place(ordinal - 1), position: place(ordinal), entries };
}

function noticeOf(ordinal: number, kind: 'whole' | 'large' = 'whole'): CommitNotice {
  const { previous, position, entries } = commitOf(ordinal);
  const mark = { ...position, previousId: previous.id };
  return { ...mark, entries: kind === 'whole' ? entries : undefined };
}

function collect(): { readonly sink: Sink; readonly ordinals: number[] } {
  const ordinals: number[] = [];
  const commits = (list: readonly Commit[]): void => {
    for (const { previous, position } of list) {
      expect(previous).toEqual(place(position.ordinal - 1));
      ordinals.push(position.ordinal);
    }
  };
  return { sink: { live: () => {}, commits }, ordinals };
}

const watching = (): Watch => ({ at: undefined, end: () => {} });

type Step = { readonly kind: 'write' | 'hear'; readonly count: number } | { readonly kind: 'page' };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constantFrom('write', 'hear'), count: fc.integer({ min: 1, max: 5 }) }),
  fc.record({ kind: fc.constant('page') }),
);

test('whatever is heard before, during and after a page, each commit is passed on once and in order', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(step, fc.constantFrom('whole', 'whole', 'large'))),
      async (steps) => {
        const { sink, ordinals } = collect();
        const arrivals = new Arrivals(sink);
        const watch = watching();
        const kinds: ('whole' | 'large')[] = [];
        let heard = 0;
        let at = 0;
        let passing: Promise<Position> | undefined;
        const hear = (count: number): void => {
          const end = Math.min(heard + count, kinds.length);
          if (end === heard) return;
          const list = [];
          for (let n = heard + 1; n <= end; n += 1) list.push(noticeOf(n, kinds[n - 1]));
          heard = end;
          arrivals.announced(list);
        };
        /** Reads the log; while the answer is on its way, more is written and a little is heard. */
        const page = async (meanwhile: number): Promise<void> => {
          arrivals.hold();
          const end = kinds.length;
          for (let n = 0; n < meanwhile; n += 1) kinds.push('whole');
          hear(meanwhile * 2);
          for (let n = at + 1; n <= end; n += 1) ordinals.push(n);
          at = end;
          passing = arrivals.pass(place(at), watch);
          await settle();
        };
        /** Reads the log again wherever it has to be. */
        const settle = async (): Promise<void> => {
          await Promise.resolve();
          if (watch.at !== undefined || passing === undefined) return;
          at = (await passing).ordinal;
          await page(0);
        };
        await page(0);
        for (const [one, kind] of steps) {
          if (one.kind === 'write') for (let n = 0; n < one.count; n += 1) kinds.push(kind);
          else if (one.kind === 'hear') hear(one.count);
          else {
            arrivals.stop();
            at = (await (passing as Promise<Position>)).ordinal;
            await page(2);
          }
          await settle();
        }
        while (heard < kinds.length) {
          hear(3);
          await settle();
        }
        expect(ordinals).toEqual(kinds.map((_, index) => index + 1));
      },
    ),
  );
});

test.each([
  ['leaves one out', noticeOf(3)],
  ['is of another epoch', { ...noticeOf(2), epoch: 'BBBBBBBBBBBB' }],
  ['follows another commit', { ...noticeOf(2), previousId: '999-0' }],
  ['takes the place of the one that was read', { ...noticeOf(1), id: '2000-0' }],
  ['has no entries', noticeOf(2, 'large')],
  ['is none', undefined],
])('a notice that %s has the log asked, from where it was read to', async (_, heard) => {
  const { sink, ordinals } = collect();
  const watch = watching();
  const arrivals = new Arrivals(sink);
  arrivals.hold();
  const passing = arrivals.pass(place(1), watch);
  arrivals.announced([heard, noticeOf(4)]);
  expect(await passing).toEqual(place(1));
  expect(ordinals).toEqual([]);
  expect(watch.at).toBeUndefined();
});

test('of more than is kept while the log is read, nothing is taken for the next', async () => {
  const { sink, ordinals } = collect();
  const arrivals = new Arrivals(sink);
  arrivals.hold();
  for (let n = 1; n <= 1_000; n += 1) arrivals.announced([noticeOf(n)]);
  expect(await arrivals.pass(place(0), watching())).toEqual(place(0));
  expect(ordinals).toEqual([]);
});

test('a watch that breaks ends the passing on where it is', async () => {
  const { sink } = collect();
  const arrivals = new Arrivals(sink);
  const watch = watching();
  const passing = arrivals.pass(place(0), watch);
  arrivals.announced([noticeOf(1)]);
  expect(watch.at).toEqual(place(1));
  // The kind is of no account here.
  arrivals.broken(new Error('gone') as never);
  expect(await passing).toEqual(place(1));
  expect(await arrivals.pass(place(1), watch)).toEqual(place(1));
});
