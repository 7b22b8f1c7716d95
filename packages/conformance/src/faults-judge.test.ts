import type { Position } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { FaultHistory } from './faults-history.ts';
import { emptyLedger, FaultJudge, type FaultLedger } from './faults-judge.ts';
import type { FaultEvent } from './faults-record.ts';

const EPOCH = 'AAAAAAAAAAAA';
const OTHER = 'BBBBBBBBBBBB';

function at(ordinal: number, epoch: string = EPOCH, id = `${ordinal}-0`): Position {
  return { epoch, ordinal, id: ordinal === 0 ? '0-0' : id };
}

/** A log of so many commits of one entry each, all acknowledged. */
function historyOf(commits: number): FaultHistory {
  const history = new FaultHistory();
  for (let n = 1; n <= commits; n += 1) history.acknowledge(n, 1, at(n));
  return history;
}

/** The log as it is found when all is quiet. */
function read(history: FaultHistory, first: Position, last: Position): void {
  history.read([], { first, last }, () => 0);
}

function entry(n: number, resume: Position = at(n)): FaultEvent {
  return { kind: 'entry', value: { n, index: 0, of: 1 }, resume };
}

function entries(from: number, to: number): FaultEvent[] {
  return Array.from({ length: to - from + 1 }, (_, step) => entry(from + step));
}

const BEGUN: readonly FaultEvent[] = [{ kind: 'connected' }, { kind: 'stands', at: at(0) }];

interface Judged extends FaultLedger {
  readonly reasons: readonly string[];
}

/** Judges one subscriber who noticed these events, where the log ends at `tip`. */
function judged(history: FaultHistory, events: readonly FaultEvent[], tip: Position): Judged {
  const ledger = emptyLedger();
  const judge = new FaultJudge('somebody', history, ledger);
  judge.judge([...BEGUN, ...events], tip, history.heldFrom(1));
  return { ...ledger, reasons: judge.reasons };
}

const CLEAN = { lost: 0, repeated: 0, failed: 0, problems: [] };

test('whoever got everything once and in order is found to have', () => {
  const events = entries(1, 5);
  expect(judged(historyOf(5), events, at(5))).toMatchObject({ ...CLEAN, delivered: 5, told: 0 });
});

test('a commit that was left out is a silent loss', () => {
  const events = [...entries(1, 2), ...entries(4, 5)];
  expect(judged(historyOf(5), events, at(5))).toMatchObject({ lost: 1, told: 0 });
});

test('a commit left out while the connection was made anew is a silent loss', () => {
  const moved: FaultEvent[] = [{ kind: 'connected' }, { kind: 'stands', at: at(3) }];
  const events = [...entries(1, 2), ...moved, ...entries(4, 5)];
  expect(judged(historyOf(5), events, at(5)).lost).toBeGreaterThan(0);
});

test('commits that never came at the end are a silent loss', () => {
  expect(judged(historyOf(5), entries(1, 3), at(5))).toMatchObject({ lost: 2, told: 0 });
});

test('values that are not those of the log are a loss, whatever the tokens say', () => {
  const events = [...entries(1, 2), entry(4, at(3)), entry(4), entry(5)];
  expect(judged(historyOf(5), events, at(5))).toMatchObject({ failed: 1, lost: 1 });
});

test('an entry that comes twice is a repeat, on one connection and on the next', () => {
  const twice = [...entries(1, 3), entry(3), ...entries(4, 5)];
  expect(judged(historyOf(5), twice, at(5))).toMatchObject({ repeated: 1, lost: 0 });
  const again: FaultEvent[] = [...entries(1, 3), { kind: 'connected' }, entry(3), ...entries(4, 5)];
  expect(judged(historyOf(5), again, at(5))).toMatchObject({ repeated: 1, lost: 0 });
});

test('a commit comes whole: its start may come again on the next connection, and nothing else', () => {
  const history = new FaultHistory();
  history.acknowledge(1, 3, at(1));
  const part = (index: number): FaultEvent => ({
    kind: 'entry',
    value: { n: 1, index, of: 3 },
    resume: index === 2 ? at(1) : at(0),
  });
  const whole = [part(0), part(1), part(2)];
  expect(judged(history, whole, at(1))).toMatchObject(CLEAN);
  expect(judged(history, [part(0), part(1), { kind: 'connected' }, ...whole], at(1))).toMatchObject(
    CLEAN,
  );
  expect(judged(history, [part(0), part(1), ...whole], at(1)).repeated).toBe(1);
  expect(judged(history, [part(0), part(2)], at(1)).lost).toBeGreaterThan(0);
  expect(judged(history, [part(1), part(2)], at(1)).lost).toBeGreaterThan(0);
  expect(judged(history, [part(0), part(1), { kind: 'connected' }, part(2)], at(1))).toMatchObject(
    CLEAN,
  );
});

/** Five commits, the last two rolled back and others in their place. */
function forked(): FaultHistory {
  const history = historyOf(5);
  history.acknowledge(6, 1, at(4, EPOCH, '40-0'));
  history.acknowledge(7, 1, at(5, EPOCH, '50-0'));
  read(history, at(0), at(5, EPOCH, '50-0'));
  return history;
}
const FORKED_TIP = at(5, EPOCH, '50-0');
const AFTER_FORK = [entry(6, at(4, EPOCH, '40-0')), entry(7, FORKED_TIP)];

test('a log that was rolled back is to be told to those who had what is gone, and to nobody else', () => {
  const gap: FaultEvent = { kind: 'snapshot', reason: 'forked', at: FORKED_TIP };
  expect(judged(forked(), [...entries(1, 5), gap], FORKED_TIP)).toMatchObject({
    ...CLEAN,
    told: 1,
    reasons: ['forked'],
  });
  expect(judged(forked(), [...entries(1, 3), ...AFTER_FORK], FORKED_TIP)).toMatchObject(CLEAN);
  expect(judged(forked(), [...entries(1, 3), gap], FORKED_TIP)).toMatchObject({ failed: 1 });
});

test('going on in the other branch without a word is a silent loss', () => {
  const across = [...entries(1, 4), entry(7, FORKED_TIP)];
  expect(judged(forked(), across, FORKED_TIP).lost).toBeGreaterThan(0);
  const stayed = entries(1, 5);
  expect(judged(forked(), stayed, FORKED_TIP).lost).toBeGreaterThan(0);
});

test('a rollback is a loss also where nothing was written since', () => {
  const history = historyOf(5);
  read(history, at(0), at(3));
  const gap: FaultEvent = { kind: 'snapshot', reason: 'forked', at: at(3) };
  expect(judged(history, [...entries(1, 5), gap], at(3))).toMatchObject({ ...CLEAN, told: 1 });
  expect(judged(history, entries(1, 5), at(3)).lost).toBeGreaterThan(0);
});

test('a log made anew is to be told, by its reason', () => {
  const history = historyOf(5);
  history.acknowledge(6, 1, at(1, OTHER));
  read(history, at(0, OTHER), at(1, OTHER));
  const refused = (reason: string): FaultEvent[] => [
    ...entries(1, 5),
    { kind: 'refused', reason },
    { kind: 'connected' },
    { kind: 'stands', at: at(0, OTHER) },
    entry(6, at(1, OTHER)),
  ];
  expect(judged(history, refused('epoch'), at(1, OTHER))).toMatchObject({ ...CLEAN, told: 1 });
  expect(judged(history, refused('trimmed'), at(1, OTHER))).toMatchObject({ failed: 1 });
  const silent = [...entries(1, 5), entry(6, at(1, OTHER))];
  expect(judged(history, silent, at(1, OTHER)).lost).toBeGreaterThan(0);
});

test('a trim is a loss for those whose next commit it took', () => {
  const history = historyOf(5);
  read(history, at(3), at(5));
  const gap: FaultEvent = { kind: 'snapshot', reason: 'trimmed', at: at(5) };
  expect(judged(history, [...entries(1, 2), gap], at(5))).toMatchObject({ ...CLEAN, told: 1 });
  // The last commit removed was the last that came: nothing is lost.
  expect(judged(history, [...entries(1, 3), gap], at(5))).toMatchObject({ failed: 1 });
});

test('an error that a client sees is a failure', () => {
  const events: FaultEvent[] = [
    ...entries(1, 5),
    { kind: 'failed', what: 'the feed ended: unavailable' },
  ];
  expect(judged(historyOf(5), events, at(5))).toMatchObject({
    failed: 1,
    problems: ['somebody the feed ended: unavailable'],
  });
});

test('an append that the log holds twice is found', () => {
  const history = historyOf(2);
  const commit = (ordinal: number) => ({
    previous: at(ordinal - 1),
    position: at(ordinal),
    entries: [],
  });
  const twice = history.read([commit(1), commit(2)], { first: at(0), last: at(2) }, () => 1);
  expect(twice).toEqual([1]);
});

test('of appends that were rolled back nobody who stood before them can know', () => {
  expect(forked().heldFrom(1)).toEqual([1, 2, 3, 6, 7]);
});
