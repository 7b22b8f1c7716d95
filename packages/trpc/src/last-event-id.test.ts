import { initTRPC } from '@trpc/server';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { FeedError } from './feed-error.ts';
import { feedInput } from './feed-input.ts';
import { lastEventId } from './last-event-id.ts';

const signal = new AbortController().signal;
const raw = (input: unknown) => async (): Promise<unknown> => input;

test('the raw input is asked first, then the parsed one', async () => {
  const input = { lastEventId: 'parsed' };
  await expect(lastEventId({ input, getRawInput: raw({ lastEventId: 'raw' }) })).resolves.toBe(
    'raw',
  );
  await expect(lastEventId({ input, getRawInput: raw({}) })).resolves.toBe('parsed');
  await expect(lastEventId({ input })).resolves.toBe('parsed');
});

test('an absent id is undefined, and any other is answered unchecked', async () => {
  for (const input of [undefined, null, {}, { room: 'a' }]) {
    await expect(lastEventId({ input, getRawInput: raw(input) })).resolves.toBeUndefined();
  }
  for (const id of ['', 5, ['x'], {}, 'a\nb']) {
    const input = { lastEventId: id };
    await expect(lastEventId({ input: {}, getRawInput: raw(input) })).resolves.toBe(id);
  }
});

test('an id that came by the prototype of the input is none', async () => {
  const input = Object.create({ lastEventId: 'inherited' }) as object;
  await expect(lastEventId({ input, getRawInput: raw(input) })).resolves.toBeUndefined();
});

test.each([['text'], [7], [true], [['a', 'b']]])(
  'an input that cannot carry an id (%j) is refused from the start',
  async (input) => {
    const refused = lastEventId({ input: undefined, getRawInput: raw(input) });
    await expect(refused).rejects.toBeInstanceOf(FeedError);
    await expect(refused).rejects.toMatchObject({ reason: 'topic', httpStatus: 400 });
  },
);

test('feedInput() hides the id from a strict schema, and the feed still finds it', async () => {
  const t = initTRPC.create();
  const seen: unknown[] = [];
  const router = t.router({
    strict: t.procedure
      .concat(feedInput())
      .input(z.strictObject({ room: z.string() }))
      .query(async (options) => {
        seen.push(options.input, await lastEventId(options));
        return null;
      }),
  });
  const input = { room: 'a', lastEventId: 'token' };
  // With the signal that a transport gives each call, and as a server-side caller without one.
  await t.createCallerFactory(router)({}, { signal }).strict(input);
  await t.createCallerFactory(router)({}).strict(input);
  await t.createCallerFactory(router)({}).strict({ room: 'b' });
  expect(seen).toEqual([{ room: 'a' }, 'token', { room: 'a' }, 'token', { room: 'b' }, undefined]);
});

test('calls of a server-side caller that share a signal have an id each', async () => {
  const t = initTRPC.create();
  const strict = t.procedure
    .concat(feedInput())
    .input(z.strictObject({ room: z.string() }))
    .query(async (options) => (await lastEventId(options)) ?? 'none');
  const caller = t.createCallerFactory(t.router({ strict }))({}, { signal });
  const ids = [{ lastEventId: 'first' }, { lastEventId: 'second' }, {}];
  const found = await Promise.all(ids.map((id) => caller.strict({ room: 'a', ...id })));
  expect(found).toEqual(['first', 'second', 'none']);
});
