import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dataText } from './ws-encoder.ts';

const plain = { serialize: (data: unknown) => data };

/** As tRPC's own adapter writes it. */
function reference(token: string, value: unknown): string {
  const data = { id: token, data: value };
  return `"result":${JSON.stringify({ type: 'data', data, id: token })}}`;
}

const anything = fc.anything({
  withDate: true,
  withNullPrototype: true,
  withObjectString: true,
  withSparseArray: true,
});

test('a frame is what nested objects would be written as, whatever the value', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), anything, (token, value) => {
      expect(dataText(token, value, plain)).toBe(reference(token, value));
    }),
    { numRuns: 1000 },
  );
});

test("a value's own JSON is used as it is, and gives the same frame where it is what JSON.stringify writes", () => {
  fc.assert(
    fc.property(fc.json(), (json) => {
      const value: unknown = JSON.parse(json);
      const canonical = JSON.stringify(value);
      expect(dataText('token', value, plain, canonical)).toBe(reference('token', value));
      expect(JSON.parse(`{${dataText('token', value, plain, ` ${json}\n`)}`)).toEqual(
        JSON.parse(`{${reference('token', value)}`),
      );
    }),
  );
});

test.each<[string, unknown]>([
  ['that has no JSON', undefined],
  ['that is a function', () => 1],
  ['that is a symbol', Symbol('a')],
  ['that is told its key', { toJSON: (key: string) => `under ${key}` }],
  ['with one inside that is told its key', { a: { toJSON: (key: string) => `under ${key}` } }],
  ['that is a date', new Date(0)],
  ['that is a function with JSON', Object.assign(() => 1, { toJSON: (key: string) => key })],
  ['that is no number', Number.NaN],
  ['with __proto__ as a key', JSON.parse('{"__proto__":1,"2":1,"1":2}')],
])('a value %s is written as it would be in nested objects', (_, value) => {
  expect(dataText('token', value, plain)).toBe(reference('token', value));
});

test.each<[string, (data: { id?: string; data: unknown; more?: number }) => unknown]>([
  ['answers something else', (data) => ({ json: data })],
  ['adds to what it is given', (data) => Object.assign(data, { more: 1 })],
  ['replaces the value in what it is given', (data) => Object.assign(data, { data: 'other' })],
  ['replaces the id in what it is given', (data) => Object.assign(data, { id: 'other' })],
])('what a transformer makes is written where it %s', (_, serialize) => {
  const serializer = { serialize: (data: unknown) => serialize(data as { data: unknown }) };
  const data = serialize({ id: 'token', data: [1] });
  const expected = `"result":${JSON.stringify({ type: 'data', data, id: 'token' })}}`;
  expect(dataText('token', [1], serializer)).toBe(expected);
  expect(dataText('token', [1], serializer, '[1]')).toBe(expected);
});
