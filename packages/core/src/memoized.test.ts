import { expect, test } from 'vitest';
import { Memoized } from './memoized.ts';

test('what each of many owners keeps is made once, and is its own', () => {
  const shared = new Memoized();
  const owners = Array.from({ length: 5 }, () => ({}));
  const made: number[] = [];
  const ask = (owner: object, at: number): number =>
    shared.memo(owner, () => {
      made.push(at);
      return at;
    });
  for (let round = 0; round < 3; round += 1) {
    expect(owners.map(ask)).toEqual([0, 1, 2, 3, 4]);
  }
  expect(made).toEqual([0, 1, 2, 3, 4]);
  expect(owners.map((owner) => shared.kept(owner))).toEqual([0, 1, 2, 3, 4]);
});

test('what was not made yet is not there', () => {
  const shared = new Memoized();
  const owners = Array.from({ length: 4 }, () => ({}));
  for (const owner of owners) {
    expect(shared.kept(owner)).toBeUndefined();
    shared.memo(owner, () => 'made');
  }
});

test('making something for one owner may make something for others', () => {
  const shared = new Memoized();
  const owners = Array.from({ length: 4 }, () => ({}));
  let made = 0;
  const ask = (at: number): string => {
    const owner = owners[at];
    if (owner === undefined) return '';
    return shared.memo(owner, () => {
      made += 1;
      return `${at}${ask(at + 1)}`;
    });
  };
  expect(ask(0)).toBe('0123');
  expect([3, 2, 1, 0].map(ask)).toEqual(['3', '23', '123', '0123']);
  expect(made).toBe(4);
});

test('nothing, once made, is kept too', () => {
  const shared = new Memoized();
  const owners = [{}, {}, {}];
  let made = 0;
  for (const owner of [...owners, ...owners]) {
    shared.memo(owner, () => {
      made += 1;
      return undefined;
    });
  }
  expect(made).toBe(3);
});

test('what could not be made is made at the next asking', () => {
  const shared = new Memoized();
  const owner = {};
  const fail = (): never => {
    throw new Error('not yet');
  };
  expect(() => shared.memo(owner, fail)).toThrow('not yet');
  expect(shared.memo(owner, () => 'made')).toBe('made');
});
