import { expect, test } from 'vitest';
import { readRedirection, readSlots } from './slot-map.ts';

const asked = { host: '10.0.0.1', port: 7000 };

test('the first node of a range is the primary', () => {
  const reply = [[0, 9, ['10.0.0.2', 7001, 'id'], ['10.0.0.3', 7002, 'id']]] as const;
  const primary = { host: '10.0.0.2', port: 7001 };
  expect(readSlots(reply, asked)).toEqual([{ from: 0, to: 9, primary }]);
});

test.each([null, ''])('a node of the name %j is where it was asked', (host) => {
  const primary = { host: '10.0.0.1', port: 7001 };
  expect(readSlots([[0, 9, [host, 7001]]], asked)).toEqual([{ from: 0, to: 9, primary }]);
});

test('slots that nobody serves, or one whose name is not known yet, are left out', () => {
  expect(readSlots([[0, 9]], asked)).toEqual([]);
  expect(readSlots([[0, 9, ['?', 7001]]], asked)).toEqual([]);
});

test.each([
  ['MOVED 3999 127.0.0.1:6381', { kind: 'MOVED', slot: 3999, host: '127.0.0.1', port: 6381 }],
  ['ASK 0 redis-1.svc:6379', { kind: 'ASK', slot: 0, host: 'redis-1.svc', port: 6379 }],
  ['MOVED 1 2001:db8::1:6379', { kind: 'MOVED', slot: 1, host: '2001:db8::1', port: 6379 }],
  ['MOVED 1 :6379', { kind: 'MOVED', slot: 1, host: '10.0.0.1', port: 6379 }],
])('%j is a redirection', (message, { host, port, ...rest }) => {
  expect(readRedirection(message, asked)).toEqual({ ...rest, address: { host, port } });
});

test.each([
  'MOVED 16384 h:1',
  'MOVED x h:1',
  'MOVED 1 ?:1',
  'ASK 1 h',
  'ERR MOVED 1 h:1',
  'CLUSTERDOWN',
])('%j is none', (message) => {
  expect(readRedirection(message, asked)).toBeUndefined();
});
