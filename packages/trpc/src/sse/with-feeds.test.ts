import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { BrokerError } from '@brokerfeed/core';
import { initTRPC } from '@trpc/server';
import type { CreateHTTPContextOptions } from '@trpc/server/adapters/standalone';
import { expect, test } from 'vitest';
import { FeedIterator } from '../feed-iterator.ts';
import { withFeeds } from './with-feeds.ts';

const t = initTRPC.create();
const router = t.router({ sub: t.procedure.subscription(async function* () {}) });

/** What tRPC asks for a context with, for one subscription. */
function callOf(res: unknown): CreateHTTPContextOptions {
  const call = { path: 'sub', procedure: router.sub, getRawInput: async () => {}, batchIndex: 0 };
  const info = { type: 'subscription', calls: [call], isBatchCall: false };
  return { info, res, req: {} } as unknown as CreateHTTPContextOptions;
}

const RESPONSE = { write: () => true, on: () => {}, writableEnded: false };

test('options are checked, and the sentence names the bad one', () => {
  for (const maxBufferedBytes of [0, -1, 1.5, Number.NaN, '1' as never]) {
    expect(() => withFeeds({ router }, { maxBufferedBytes })).toThrow(BrokerError);
    expect(() => withFeeds({ router }, { maxBufferedBytes })).toThrow(/^maxBufferedBytes is /);
  }
});

test('the options given are not changed, and all but the context is passed on as it is', async () => {
  const given = Object.freeze({
    router,
    createContext: async () => ({ user: 'anna' }),
    onError: () => {},
  });
  const { createContext, drain, ...rest } = withFeeds(given);
  expect(drain).toBeTypeOf('function');
  expect(rest).toEqual({ router, onError: given.onError });
  expect(createContext).not.toBe(given.createContext);
});

test('the context is the one that was made, of what tRPC said', async () => {
  const asked: unknown[] = [];
  const { createContext } = withFeeds({
    router,
    createContext: async (call: CreateHTTPContextOptions) => {
      // The procedure is still the router's own.
      asked.push(call, call.info.calls[0]?.procedure === (router.sub as unknown));
      return { user: 'anna' };
    },
  });
  const call = callOf(RESPONSE);
  expect(await createContext(call)).toEqual({ user: 'anna' });
  expect(asked).toEqual([call, true]);
});

test('a context that cannot be made is refused as ever', async () => {
  const error = new Error('who are you?');
  const { createContext } = withFeeds({
    router,
    createContext: async (_call: CreateHTTPContextOptions): Promise<object> => {
      throw error;
    },
  });
  await expect(createContext(callOf(RESPONSE))).rejects.toBe(error);
});

interface AnyOptions {
  readonly router: typeof router;
  readonly createContext?: (call: CreateHTTPContextOptions) => unknown;
}

test.each([
  ['a response of Node', RESPONSE, true],
  ['a reply of Fastify, which holds one', { raw: RESPONSE }, true],
  ['a WebSocket', { on: () => {}, send: () => {} }, false],
  ['none', undefined, false],
  ['null', null, false],
])('of %s', async (_name, res, standsIn) => {
  const call = callOf(res);
  const options: AnyOptions = withFeeds<AnyOptions>({ router });
  await options.createContext?.(call);
  expect(call.info.calls[0]?.procedure !== (router.sub as unknown)).toBe(standsIn);
});

test('a response that is gone when the context is there is not waited for by a drain', async () => {
  const response = Object.assign(new PassThrough(), { headersSent: false });
  const { createContext, drain } = withFeeds({
    router,
    createContext: async (_call: CreateHTTPContextOptions) => {
      response.destroy();
      await once(response, 'close');
      return {};
    },
  });
  await createContext(callOf(response));
  expect(await drain({ overMs: 0, graceMs: 0 })).toEqual({ moved: 0, closed: 0 });
});

test('a call that cannot be changed is left as it is', async () => {
  const call = callOf(RESPONSE);
  Object.freeze(call.info.calls[0]);
  const options: AnyOptions = withFeeds<AnyOptions>({ router });
  await options.createContext?.(call);
  expect(call.info.calls[0]?.procedure).toBe(router.sub);
});

const READER = {
  isReady: false,
  isAsked: false,
  next: async () => undefined,
  push: async () => {},
  close: () => {},
};

test('a feed is intact until somebody stands in for it or changes it', () => {
  const feed = new FeedIterator(READER);
  expect(FeedIterator.intact(feed)).toBe(feed);
  expect(FeedIterator.intact(Object.freeze(feed))).toBe(feed);
  expect(FeedIterator.intact(new Proxy(feed, {}))).toBeUndefined();
  expect(FeedIterator.intact(Object.create(feed))).toBeUndefined();
  class Louder extends FeedIterator<unknown> {}
  expect(FeedIterator.intact(new Louder(READER))).toBeUndefined();
  const changed = new FeedIterator(READER);
  changed.next = async () => ({ done: true, value: undefined });
  expect(FeedIterator.intact(changed)).toBeUndefined();
  for (const other of [undefined, null, 1, {}, (async function* () {})()]) {
    expect(FeedIterator.intact(other)).toBeUndefined();
  }
});

test('a feed is pulled where no target opens', async () => {
  const frames = [{ token: 'a', value: 1 }];
  const feed = new FeedIterator({ ...READER, next: async () => frames.shift() });
  feed.pushTo(Promise.resolve(undefined));
  const values = [];
  for await (const [, value] of feed) values.push(value);
  expect(values).toEqual([1]);
});

test('a feed is pushed where one does, and done when that is', async () => {
  const targets: unknown[] = [];
  const feed = new FeedIterator({ ...READER, push: async (target) => void targets.push(target) });
  const target = {} as never;
  feed.pushTo(Promise.resolve(target));
  expect(await feed.next()).toEqual({ done: true, value: undefined });
  expect(targets).toEqual([target]);
});
