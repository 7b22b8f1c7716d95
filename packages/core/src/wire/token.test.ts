import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeBase64url } from './base64url.ts';
import {
  entryAddress,
  MAC_BYTES,
  packToken,
  parseToken,
  printToken,
  TOKEN_VERSION,
  type TokenFields,
} from './token.ts';

const CHARACTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=+/ ';
const EPOCH = 'AbCdEf-_0123';

const epoch = fc.uint8Array({ minLength: 9, maxLength: 9 }).map(encodeBase64url);
const u64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const id = fc.oneof(
  u64.map(String),
  fc.tuple(u64, u64).map(([ms, seq]) => `${ms}-${seq}`),
);
const fields: fc.Arbitrary<TokenFields> = fc.record({
  kind: fc.constantFrom('entry', 'inside', 'position', 'snapshot'),
  epoch,
  id,
  ordinal: fc.maxSafeNat(),
  index: fc.maxSafeNat(),
});
const keyId = fc.option(fc.nat(255), { nil: undefined });

function print(token: TokenFields, key: number | undefined): string {
  return printToken(packToken(token, key), key === undefined ? undefined : MAC);
}

const MAC = new Uint8Array(MAC_BYTES).fill(0xa5);

const REDIS: TokenFields = {
  kind: 'entry',
  epoch: EPOCH,
  id: '1732999999999-12',
  ordinal: 2 ** 40,
  index: 9999,
};

test('every token says what it was made of', () => {
  fc.assert(
    fc.property(fields, keyId, (token, key) => {
      const parsed = parseToken(print(token, key));
      expect(parsed?.fields).toEqual(token);
      expect(parsed?.payload).toEqual(packToken(token, key));
      expect(parsed?.signature).toEqual(key === undefined ? undefined : { keyId: key, mac: MAC });
    }),
    { numRuns: 1000 },
  );
});

test('a signed token of a Redis entry has 64 characters or fewer', () => {
  const redis = fc.record({
    kind: fields.map((any) => any.kind),
    epoch,
    id: fc
      .tuple(
        fc.nat(9_999_999_999_999 % 2 ** 31).map((low) => 9_999_999_999_999 - low),
        fc.nat(2 ** 30),
      )
      .map(([ms, seq]) => `${ms}-${seq}`),
    ordinal: fc.nat(2 ** 31 - 1).map((low) => 2 ** 40 - low),
    index: fc.nat(9999),
  });
  fc.assert(
    fc.property(redis, fc.nat(255), (token, key) => {
      expect(print(token, key).length).toBeLessThanOrEqual(64);
    }),
  );
  expect(print(REDIS, 255).length).toBe(51);
});

test('an id that is the ordinal costs one byte', () => {
  const token = { ...REDIS, id: String(REDIS.ordinal) };
  expect(packToken(REDIS, 1).length - packToken(token, 1).length).toBe(6);
});

test('a text with one other character is another token or none', () => {
  for (const key of [undefined, 7]) {
    const text = print(REDIS, key);
    for (let at = 0; at < text.length; at += 1) {
      for (const character of CHARACTERS) {
        if (character === text[at]) continue;
        expectItself(text.slice(0, at) + character + text.slice(at + 1));
      }
    }
  }
});

test('any text is the only text of its token, or of none', () => {
  const text = fc.oneof(
    fc.base64String({ maxLength: 100 }),
    fc.uint8Array({ minLength: 12, maxLength: 50 }).map((bytes) => {
      bytes[0] = (TOKEN_VERSION << 4) | ((bytes[0] ?? 0) & 15);
      return encodeBase64url(bytes);
    }),
  );
  fc.assert(fc.property(text, expectItself), { numRuns: 2000 });
});

test('a text cut short or made longer is another token or none', () => {
  for (const key of [undefined, 7]) {
    const text = print(REDIS, key);
    for (let length = 0; length < text.length; length += 1) expectItself(text.slice(0, length));
    for (const more of ['A', 'AA', 'AAA', 'AAAA', '=', '\n']) expectItself(text + more);
  }
  expect(parseToken('')).toBeUndefined();
});

test('an unsigned token cut short is none', () => {
  const text = print(REDIS, undefined);
  for (let length = 0; length < text.length; length += 1) {
    expect(parseToken(text.slice(0, length))).toBeUndefined();
  }
});

test('a token of another version is none', () => {
  const payload = packToken(REDIS, undefined);
  for (let version = 0; version < 16; version += 1) {
    payload[0] = (version << 4) | ((payload[0] ?? 0) & 15);
    const parsed = parseToken(printToken(payload, undefined));
    expect(parsed !== undefined).toBe(version === TOKEN_VERSION);
  }
});

const HEAD = [TOKEN_VERSION << 4, 0, 1, 2, 3, 4, 5, 6, 7, 8];

test.each([
  ['a number spelt longer than needed', [0x80, 0x00, 1, 0]],
  ['a number of more than ten bytes', [...Array(10).fill(0x80), 1, 1, 0]],
  ['a number of more than 64 bits', [...Array(9).fill(0xff), 2, 1, 0]],
  ['an ordinal beyond the safe integers', [0, ...Array(7).fill(0xff), 0x1f, 0]],
  ['an index beyond the safe integers', [0, 1, ...Array(7).fill(0xff), 0x1f]],
  ['a number without an end', [0, 1, 0x80]],
  ['a missing index', [0, 1]],
  ['a byte too many', [0, 1, 0, 0]],
])('%s is refused', (_, rest) => {
  expect(parseToken(encodeBase64url(Uint8Array.from([...HEAD, 0, 1, 0])))).toBeDefined();
  expect(parseToken(encodeBase64url(Uint8Array.from([...HEAD, ...rest])))).toBeUndefined();
});

test('an epoch that is not twelve characters of base64url is not packed', () => {
  for (const bad of ['', 'short', 'thirteen chars', 'AAAAAAAAAAA=']) {
    expect(() => packToken({ ...REDIS, epoch: bad }, 1)).toThrow(RangeError);
  }
});

test('the address of an entry is its commit and its place, and only entries have one', () => {
  expect(entryAddress({ ...REDIS, ordinal: 5, index: 2 })).toEqual({ generation: 5, index: 2 });
  // Inside a commit the token stands before it.
  expect(entryAddress({ ...REDIS, kind: 'inside', ordinal: 4, index: 1 })).toEqual({
    generation: 5,
    index: 1,
  });
  expect(entryAddress({ ...REDIS, kind: 'position' })).toBeUndefined();
  expect(entryAddress({ ...REDIS, kind: 'snapshot' })).toBeUndefined();
});

function expectItself(text: string): void {
  const parsed = parseToken(text);
  if (parsed === undefined) return;
  const repacked = packToken(parsed.fields, parsed.signature?.keyId);
  expect(printToken(repacked, parsed.signature?.mac)).toBe(text);
}
