import { announce, defineTopic, type Logger } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';
import { TRPCError } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { TestMeter } from '../../../test/support/observed.ts';
import { makeOffer } from './push-offer.ts';
import { watchFeed } from './watch-feed.ts';

const call = { ctx: { user: 'me' }, input: undefined, signal: undefined, path: 'watch' } as const;
const T = 'presence';

describe('a watch over tRPC', () => {
  test('gives what is appended and announced once the resolver has answered', async () => {
    await using broker = memoryBroker();
    await broker.log.append(T, '0');
    const values = await watchFeed(broker, T)(call);
    announce(broker, T, '1');
    await broker.log.append(T, ['2', '3']);
    expect(await take(values, 3)).toEqual([1, 2, 3]);
  });

  test('says where events are missing, and goes on', async () => {
    await using broker = memoryBroker();
    const options = { capacity: 2, only: 'announcements', decode: 'text' } as const;
    const values = await watchFeed(broker, T, options)(call);
    for (const value of ['a', 'b', 'c', 'd']) announce(broker, T, value);
    expect(await take(values, 3)).toEqual([{ feed: 'lagged', missed: 2 }, 'c', 'd']);
  });

  test('of unknown size is said to be lagged without a number', async () => {
    const broker = memoryBroker();
    const values = await watchFeed({ ...broker, announcer: interrupting() }, T)(call);
    expect(await take(values, 1)).toEqual([{ feed: 'lagged' }]);
    await broker.close();
  });

  test('passes context and input to topic and map, and leaves out what map does not answer', async () => {
    await using broker = memoryBroker();
    const values = await watchFeed<{ user: string }, { room: string }, 'text', undefined, unknown>(
      broker,
      async ({ ctx, input }) => `${input.room}.${ctx.user}`,
      {
        decode: 'text',
        map: async (text, event, { ctx, input }) =>
          text === 'no' ? undefined : [text, event.kind, ctx.user, input.room],
      },
    )({ ...call, input: { room: 'r' } });
    announce(broker, 'r.me', 'no');
    await broker.log.append('r.me', 'yes');
    announce(broker, 'r.other', 'elsewhere');
    expect(await take(values, 1)).toEqual([['yes', 'entry', 'me', 'r']]);
  });

  test('skips what does not decode or map, and tells it once for all subscribers', async () => {
    const meter = new TestMeter();
    const events: string[] = [];
    const note = (_: object, event: string) => void events.push(event);
    const logger: Logger = { debug: note, info: note, warn: note, error: note };
    await using broker = memoryBroker({ meter, logger });
    const resolve = watchFeed(broker, T, {
      schema: z.object({ n: z.number() }),
      map: ({ n }) => {
        if (n === 13) throw new Error('unlucky');
        return n;
      },
    });
    const all = [await resolve(call), await resolve(call)];
    for (const text of ['{', '{"n":"1"}', '{"n":13}', '{"n":2}']) await broker.log.append(T, text);
    announce(broker, T, 'no JSON');
    announce(broker, T, '{"n":3}');
    for (const values of all) expect(await take(values, 2)).toEqual(expect.arrayContaining([2, 3]));
    expect(meter.of('brokerfeed.feed.refused decode')).toBe(3);
    expect(meter.of('brokerfeed.feed.refused map')).toBe(1);
    for (const values of all) await values[Symbol.asyncIterator]().return?.();
    expect(events.filter((event) => event.endsWith('.total'))).toHaveLength(2);
  });

  test('of a defined topic is decoded by its schema, and its params come from the subscription', async () => {
    await using broker = memoryBroker();
    const cursors = defineTopic({
      name: ({ room }: { room: string }) => `cursors.${room}`,
      schema: z.object({ x: z.number(), by: z.string().default('nobody') }),
    });
    const values = await watchFeed<typeof call.ctx, undefined, { room: string }, unknown, unknown>(
      broker,
      cursors as never,
      { params: ({ ctx }) => ({ room: ctx.user }) },
    )(call);
    cursors.announce(broker, { room: 'me' }, { x: 1 });
    expect(await take(values, 1)).toEqual([{ x: 1, by: 'nobody' }]);
  });
});

describe('the end of a watch over tRPC', () => {
  test.each(['the signal', 'return()', 'throw()', 'disposal'])(
    'by %s settles who waits, and leaves no live read behind',
    async (how) => {
      const meter = new TestMeter();
      await using broker = memoryBroker({ meter });
      const abort = new AbortController();
      const values = await watchFeed(broker, T, { lingerMs: 0 })({ ...call, signal: abort.signal });
      const iterator = values[Symbol.asyncIterator]();
      await iterator.next();
      const next = iterator.next();
      await new Promise(setImmediate);
      const error = new Error('thrown in');
      if (how === 'the signal') abort.abort();
      else if (how === 'return()') await iterator.return?.();
      else if (how === 'throw()') await expect(iterator.throw?.(error)).rejects.toBe(error);
      else await (iterator as unknown as AsyncDisposable)[Symbol.asyncDispose]();
      expect(await next).toEqual({ done: true, value: undefined });
      announce(broker, T, () => expect.fail('somebody still listens'));
    },
  );

  test('does not wait for a map that never answers', async () => {
    await using broker = memoryBroker();
    const abort = new AbortController();
    const options = { map: () => new Promise<never>(() => {}) };
    const values = await watchFeed(broker, T, options)({ ...call, signal: abort.signal });
    const iterator = values[Symbol.asyncIterator]();
    await iterator.next();
    announce(broker, T, '1');
    const next = iterator.next();
    await new Promise(setImmediate);
    abort.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });

  test('by a close of the broker is a 503, so that clients come back', async () => {
    const broker = memoryBroker();
    const iterator = (await watchFeed(broker, T)(call))[Symbol.asyncIterator]();
    await iterator.next();
    const next = iterator.next();
    await broker.close();
    await expect(next).rejects.toMatchObject({ reason: 'closing', httpStatus: 503 });
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    await expect(watchFeed(broker, T)(call)).rejects.toMatchObject({ reason: 'closing' });
  });

  test('is one iteration: a second one throws', async () => {
    await using broker = memoryBroker();
    const values = await watchFeed(broker, T)(call);
    values[Symbol.asyncIterator]();
    expect(() => values[Symbol.asyncIterator]()).toThrow('iterated once');
  });

  test('that has begun already refuses nothing: a signal that has aborted ends it at once', async () => {
    await using broker = memoryBroker();
    const values = await watchFeed(broker, T)({ ...call, signal: AbortSignal.abort() });
    expect(await values[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  });
});

test('while its connection is full nothing is taken, and the client is told what it missed', async () => {
  await using broker = memoryBroker();
  const options = { capacity: 2, decode: 'text' } as const;
  const values = await watchFeed(broker, T, options)(call);
  let full = false;
  let writable = (): void => {};
  makeOffer({
    watch: () => () => false,
    push: () => Promise.reject(new Error('a watch is not pushed')),
    isFull: () => full,
    whenWritable: (callback) => {
      writable = callback;
    },
  });
  const iterator = values[Symbol.asyncIterator]();
  await iterator.next();
  full = true;
  const next = iterator.next();
  await new Promise(setImmediate);
  for (const value of ['a', 'b', 'c']) announce(broker, T, value);
  full = false;
  writable();
  expect(await next).toEqual({ done: false, value: { feed: 'lagged', missed: 1 } });
  expect(await iterator.next()).toEqual({ done: false, value: 'b' });

  full = true;
  const waiting = iterator.next();
  await iterator.return?.();
  full = false;
  writable();
  expect(await waiting).toEqual({ done: true, value: undefined });
});

describe('what is refused', () => {
  test.each<[string, unknown, object]>([
    ['topic', '', {}],
    ['topic', 42, {}],
    ['decode', T, { decode: 'xml' }],
    ['schema', T, { schema: {} }],
    ['decode', T, { schema: z.string(), decode: 'json' }],
    ['map', T, { map: 1 }],
    ['capacity', T, { capacity: 0 }],
    ['only', T, { only: 'some' }],
    ['lingerMs', T, { lingerMs: -1 }],
    ['params', defineTopic({ name: () => T, schema: z.string() }), {}],
    ['params', defineTopic({ name: () => T, schema: z.string() }), { params: {} }],
    [
      'schema',
      defineTopic({ name: () => T, schema: z.string() }),
      { params: () => ({}), schema: z.string() },
    ],
  ])('%s, by name, at construction', (name, topic, options) => {
    const build = () => watchFeed(memoryBroker(), topic as string, options);
    expect(build).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        message: expect.stringMatching(new RegExp(`^${name}`)),
      }),
    );
  });

  test('what is no broker, or cannot be read live', () => {
    const deaf = { ...memoryBroker(), log: { append: () => {}, page: () => {}, bounds: () => {} } };
    for (const broker of [{}, deaf]) {
      expect(() => watchFeed(broker as never, T)).toThrow(
        expect.objectContaining({ code: 'OPTION_INVALID' }),
      );
    }
  });

  test('announcements alone, over a broker that carries none', () => {
    const mute = { ...memoryBroker(), announcer: undefined as never };
    expect(() => watchFeed(mute, T, { only: 'announcements' })).toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED' }),
    );
    expect(() => watchFeed(mute, T)).not.toThrow();
  });

  test('a topic that is none, with a 400; what the resolver throws passes through', async () => {
    const broker = memoryBroker();
    for (const topic of ['', 42, undefined, '\ud800']) {
      const resolve = watchFeed(broker, () => topic as string);
      await expect(resolve(call)).rejects.toMatchObject({ reason: 'topic', httpStatus: 400 });
    }
    const nameless = defineTopic({ name: () => '', schema: z.string() });
    const resolve = watchFeed(broker, nameless, { params: () => ({}) });
    await expect(resolve(call)).rejects.toMatchObject({ reason: 'topic', httpStatus: 400 });
    const error = new TRPCError({ code: 'FORBIDDEN' });
    const forbid = (): never => {
      throw error;
    };
    await expect(watchFeed(broker, forbid)(call)).rejects.toBe(error);
    await expect(watchFeed(broker, nameless, { params: forbid })(call)).rejects.toBe(error);
  });
});

/** An announcer whose connection is lost as soon as somebody listens. */
function interrupting(): Parameters<typeof announce>[0]['announcer'] & object {
  return {
    announce: () => {},
    listen: async (_, receiver) => {
      receiver.interrupted();
      return () => {};
    },
  };
}

const begun = new WeakSet<object>();

/** Takes values after the first frame, which says that what came before the watch is missing. */
async function take(values: AsyncIterable<unknown>, count: number): Promise<unknown[]> {
  const iterator = values[Symbol.asyncIterator]();
  // So that a test can go on where it has stopped, and end it itself.
  Object.defineProperty(values, Symbol.asyncIterator, { value: () => iterator });
  const taken: unknown[] = [];
  if (!begun.has(iterator)) {
    begun.add(iterator);
    expect((await iterator.next()).value).toEqual({ feed: 'lagged' });
  }
  while (taken.length < count) taken.push((await iterator.next()).value);
  return taken;
}
