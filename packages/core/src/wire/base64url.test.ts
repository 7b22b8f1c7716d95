import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeBase64url, encodeBase64url } from './base64url.ts';

const bytes = fc.uint8Array({ maxLength: 64 });

test('bytes are written as Node writes them, and come back', () => {
  fc.assert(
    fc.property(bytes, (given) => {
      const text = encodeBase64url(given);
      expect(text).toBe(Buffer.from(given).toString('base64url'));
      expect(decodeBase64url(text)).toEqual(given);
    }),
  );
});

test('a text that does not print back to itself is refused', () => {
  const text = fc.oneof(
    fc.string({ maxLength: 40 }),
    fc.base64String({ maxLength: 40 }),
    fc.string({ unit: fc.constantFrom(...'AB-_+/= \n'), maxLength: 8 }),
    fc.string({ unit: 'binary', maxLength: 8 }),
  );
  fc.assert(
    fc.property(text, (given) => {
      const decoded = decodeBase64url(given);
      if (decoded !== undefined) expect(encodeBase64url(decoded)).toBe(given);
    }),
  );
});

test.each([
  ['a single character', 'A'],
  ['a fifth character', 'AAAAA'],
  ['padding', 'AA=='],
  ['bits that no byte has', 'AB'],
  ['the other alphabet', '+A'],
  ['white space', 'AA A'],
  ['a character beyond ASCII', 'AAAé'],
])('%s is refused', (_, text) => {
  expect(decodeBase64url(text)).toBeUndefined();
});
