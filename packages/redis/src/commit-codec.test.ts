import { checkAppend } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { commitFields, readEntries, readMark, readNotice } from './commit-codec.ts';

const MARK = ['o', '7', 'p', '1-0', 'e', 'AAAAAAAAAAAA'];

function roundTrip(values: readonly string[], headers: Record<string, string> = {}) {
  const write = checkAppend('t', values, { headers });
  return readEntries([...MARK, ...commitFields(write)]);
}

test('values and headers come back as they were', () => {
  const headers = { __proto__: 'own', 'a b': '"' };
  const own = Object.defineProperty({ ...headers }, '__proto__', { value: 'x', enumerable: true });
  expect(roundTrip(['a', '', '{"v":1}'], own).map(({ value }) => value)).toEqual([
    'a',
    '',
    '{"v":1}',
  ]);
  expect(Object.entries(roundTrip(['a'], own)[0]?.headers ?? {})).toEqual(Object.entries(own));
});

test('the largest commit comes back whole', () => {
  const values = Array.from({ length: 10_000 }, (_, index) => `v-${index}`);
  expect(roundTrip(values).map(({ value }) => value)).toEqual(values);
});

test('a mark is read only where the append script wrote one', () => {
  expect(readMark([...MARK, 'v', 'a'])).toEqual({
    epoch: 'AAAAAAAAAAAA',
    ordinal: 7,
    previousId: '1-0',
  });
  expect(readMark(['v', 'a'])).toBeUndefined();
  expect(readMark(['o', '7', 'v', 'a'])).toBeUndefined();
  expect(readMark(['o', '7', 'p', '1-0', 'v', 'a'])).toBeUndefined();
  expect(readMark(['o', 'open', 'p', 'price', 'e', 'x'])).toBeUndefined();
  expect(readMark(['o', '7', 'p', '12.5', 'e', 'x'])).toBeUndefined();
  expect(readMark(['v', 'a', 'o', '7', 'p', '1-0'])).toBeUndefined();
});

test('a bare XADD is its v fields, or the object of all its fields', () => {
  const read = (...fields: string[]) => readEntries(fields).map(({ value }) => value);
  expect(read('v', 'a', 'x', 'b', 'v', 'c')).toEqual(['a', 'c']);
  expect(read('price', '1', 'name', 'x')).toEqual(['{"price":"1","name":"x"}']);
  expect(read('__proto__', '1')).toEqual(['{"__proto__":"1"}']);
  expect(read('o', 'open', 'p', 'price')).toEqual(['{"o":"open","p":"price"}']);
  expect(read('j', '["a"]')).toEqual(['{"j":"[\\"a\\"]"}']);
});

test.each(['', 'x', '[]', 'null', '{"a":1}', '"a"'])('headers %j of a bare XADD are none', (h) => {
  expect(readEntries(['v', 'a', 'h', h])).toEqual([{ value: 'a', headers: {} }]);
});

const PLACE = '1-0 7 0-5 AAAAAAAAAAAA';

test('a notice has the place of the commit, and its entries or none', () => {
  const place = { id: '1-0', ordinal: 7, previousId: '0-5', epoch: 'AAAAAAAAAAAA' };
  const plain = (value: string) => ({ value, headers: {} });
  expect(readNotice(`v ${PLACE}\n`)).toEqual({ ...place, entries: [plain('')] });
  expect(readNotice(`v ${PLACE}\na\nb`)).toEqual({ ...place, entries: [plain('a\nb')] });
  expect(readNotice(`f ${PLACE}\n["v","a","v","b"]`)?.entries).toEqual(['a', 'b'].map(plain));
  expect(readNotice(`f ${PLACE}\n["h","{\\"k\\":\\"x\\"}","j","[\\"a\\"]"]`)?.entries).toEqual([
    { value: 'a', headers: { k: 'x' } },
  ]);
  expect(readNotice(`n ${PLACE}`)).toEqual({ ...place, entries: undefined });
});

test.each(['', 'v', 'hello', `x ${PLACE}\na`, 'v 1-0 x 0-5 A\na', `v  ${PLACE}\na`, `\n${PLACE}`])(
  'the text %j announces nothing',
  (text) => expect(readNotice(text)).toBeUndefined(),
);

test.each(['', '{}', '[1]', '["h","x"]', '[', '["v"]'])(
  'fields that no append announced, such as %j, leave the entries to the log',
  (json) => expect(readNotice(`f ${PLACE}\n${json}`)?.entries).toBeUndefined(),
);
