import { FEED_STATUS, type FeedReason } from '@brokerfeed/core/wire';
import { getTRPCErrorShape, initTRPC, TRPCError } from '@trpc/server';
import { expect, test } from 'vitest';
import { FeedError, withFeedErrors } from './index.ts';

const REASONS = Object.keys(FEED_STATUS) as FeedReason[];

function shapeOf(
  t: { readonly _config: Parameters<typeof getTRPCErrorShape>[0]['config'] },
  error: TRPCError,
) {
  return getTRPCErrorShape({
    config: t._config,
    error,
    type: 'subscription',
    path: 'feed',
    input: undefined,
    ctx: {},
  });
}

test.each(REASONS)('%s shows its real status and its reason', (reason) => {
  const t = initTRPC.create({ isDev: false, errorFormatter: withFeedErrors() });
  const status = FEED_STATUS[reason];
  const shape = shapeOf(t, new FeedError(reason, 'a sentence'));
  expect(shape).toMatchObject({
    message: 'a sentence',
    data: { httpStatus: status, path: 'feed', feed: { status, reason } },
  });
});

test.each(REASONS)(
  '%s travels under a code that tRPC knows, and only 503 is one that SSE retries',
  (reason) => {
    const shape = shapeOf(initTRPC.create({ isDev: false }), new FeedError(reason, 'a sentence'));
    expect(shape.code).toBeTypeOf('number');
    // -32603 stands for every 5xx; the SSE client retries it with the same id, for ever.
    expect(shape.code === -32603).toBe(FEED_STATUS[reason] === 503);
  },
);

test('a 410 without the formatter degrades to a 412', () => {
  const shape = shapeOf(initTRPC.create({ isDev: false }), new FeedError('trimmed', 'gone'));
  expect(shape.data).toEqual({ code: 'PRECONDITION_FAILED', httpStatus: 412, path: 'feed' });
});

test("the user's own shape is kept, for errors of feeds and all others", () => {
  const errorFormatter = withFeedErrors(({ shape, error }) => ({
    ...shape,
    data: { ...shape.data, trace: error.message.length },
  }));
  const t = initTRPC.create({ isDev: false, errorFormatter });
  expect(shapeOf(t, new FeedError('epoch', 'other')).data).toEqual({
    code: 'PRECONDITION_FAILED',
    httpStatus: 410,
    path: 'feed',
    trace: 5,
    feed: { status: 410, reason: 'epoch' },
  });
  expect(shapeOf(t, new TRPCError({ code: 'FORBIDDEN', message: 'no' })).data).toEqual({
    code: 'FORBIDDEN',
    httpStatus: 403,
    path: 'feed',
    trace: 2,
  });
});

test('an error of a feed is a TRPCError by class and by name, with its cause', () => {
  const cause = new Error('below');
  const error = new FeedError('unavailable', 'a sentence', { cause });
  expect(error).toBeInstanceOf(TRPCError);
  expect(error).toMatchObject({ name: 'TRPCError', code: 'SERVICE_UNAVAILABLE', cause });
});
