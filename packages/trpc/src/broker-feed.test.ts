import { memoryBroker } from '@brokerfeed/core/memory';
import { TRPCError } from '@trpc/server';
import { expect, test } from 'vitest';
import { brokerFeed } from './index.ts';

const options = { ctx: {}, input: undefined, signal: undefined, path: 'feed' } as const;

test.each([
  ['topic', ''],
  ['topic', 'x'.repeat(10_000)],
  ['topic', 42],
  ['topic', undefined],
  ['topic', '\ud800'],
])('a bad topic (%s) is refused at construction', (name, topic) => {
  const build = () => brokerFeed(memoryBroker(), topic as string);
  expect(build).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(name) }),
  );
});

test.each([
  ['from', 'newest'],
  ['decode', 'xml'],
  ['schema', {}],
  ['prepare', 1],
  ['filter', 'yes'],
  ['map', {}],
  ['onGap', []],
  ['bind', 'user'],
  ['secret', undefined],
  ['secret', ''],
  ['secret', 'too short'],
  ['secret', []],
  ['maxIdLength', 0],
  ['highWaterMark', 1.5],
  ['lingerMs', -1],
  ['control', 'on'],
  ['control', { idleMs: 0 }],
  ['onEntryError', 'retry'],
])('a bad option is refused at construction, by name: %s', (name, value) => {
  const build = () => brokerFeed(memoryBroker(), 'orders', { [name]: value } as object);
  expect(build).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID', message: expect.stringContaining(name) }),
  );
});

test('what is no broker is refused at construction', () => {
  expect(() => brokerFeed({} as never, 'orders')).toThrow(
    expect.objectContaining({ code: 'OPTION_INVALID' }),
  );
});

test('what is appended between the answer of the resolver and the first next() is delivered', async () => {
  await using broker = memoryBroker();
  const feed = await brokerFeed(broker, 'orders')(options);
  await broker.log.append('orders', '1');
  const iterator = feed[Symbol.asyncIterator]();
  await expect(iterator.next()).resolves.toMatchObject({ value: { 1: 1 } });
  await iterator.return?.();
});

test('a TRPCError of the topic resolver, and any other, passes through untouched', async () => {
  for (const error of [new TRPCError({ code: 'FORBIDDEN' }), new Error('no database')]) {
    const resolve = brokerFeed(memoryBroker(), () => {
      throw error;
    });
    await expect(resolve(options)).rejects.toBe(error);
  }
});

test('a topic resolver that answers no topic is refused with a 400, never a 5xx', async () => {
  for (const topic of ['', 'x'.repeat(10_000), 42, undefined, '\ud800']) {
    const resolve = brokerFeed(memoryBroker(), () => topic as string);
    await expect(resolve(options)).rejects.toMatchObject({
      reason: 'topic',
      httpStatus: 400,
      code: 'BAD_REQUEST',
    });
  }
});
