import fc from 'fast-check';
import { expect, test } from 'vitest';
import { canonicalId, compareIds, NO_ID, precedingId, ZERO_ID } from './stream-id.ts';

const part = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const id = fc.tuple(part, part);

test('ids are ordered by their numbers, part by part', () => {
  expect(compareIds('10-0', '9-0')).toBeGreaterThan(0);
  expect(compareIds('9-10', '9-9')).toBeGreaterThan(0);
  expect(compareIds('9-9', '10-0')).toBeLessThan(0);
  expect(compareIds('9-9', '9-9')).toBe(0);
  fc.assert(
    fc.property(id, id, (a, b) => {
      const [x, y] = [(a[0] << 64n) | a[1], (b[0] << 64n) | b[1]];
      const order = x < y ? -1 : x > y ? 1 : 0;
      expect(Math.sign(compareIds(`${a[0]}-${a[1]}`, `${b[0]}-${b[1]}`))).toBe(order);
    }),
  );
});

test('an id has one spelling', () => {
  expect(canonicalId('007-0')).toBe('7-0');
  expect(canonicalId('0-00')).toBe(ZERO_ID);
  expect(canonicalId(NO_ID)).toBe(NO_ID);
});

test.each([
  '',
  '7',
  '7-',
  '-7',
  '7-1-2',
  ' 7-1',
  '7-1\n',
  '7-x',
  '+7-1',
  '18446744073709551616-0',
  `${'0'.repeat(70)}-1`,
])('%j is no id', (text) => {
  expect(canonicalId(text)).toBeUndefined();
});

test('the id before another is the largest one below it', () => {
  expect(precedingId('5-3')).toBe('5-2');
  expect(precedingId('5-0')).toBe('4-18446744073709551615');
  expect(precedingId(ZERO_ID)).toBe(ZERO_ID);
});
