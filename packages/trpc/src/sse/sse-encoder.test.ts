import { expect, test } from 'vitest';
import { sseEncoder } from './sse-encoder.ts';

const plain = sseEncoder({ serialize: (data) => data });
const wrapping = sseEncoder({ serialize: (json) => ({ json }) });

test.each([
  ['[1, 2]', 'data: [1, 2]\nid: token\n\n\n'],
  ['"\\n"', 'data: "\\n"\nid: token\n\n\n'],
  ['[1,\n2]', 'data: [1,2]\nid: token\n\n\n'],
  ['[1,\r2]\r', 'data: [1,2]\nid: token\n\n\n'],
])("a value's own JSON %j is used unless it has line ends", (json, event) => {
  expect(plain.encode('token', JSON.parse(json), json)).toBe(event);
});

test('what a transformer makes of a value is written, and not its JSON', () => {
  expect(wrapping.encode('token', [1], '[1]')).toBe('data: {"json":[1]}\nid: token\n\n\n');
});
