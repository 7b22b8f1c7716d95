import { TRPCError, type TrackedEnvelope, tracked } from '@trpc/server';
import { z } from 'zod';

/** What a feed answers tRPC with, and what tRPC's `.output()` sees. */
export type FeedFrames<Value> = AsyncIterable<TrackedEnvelope<Value>, void, unknown>;

/** The recipe of docs/recipes.md: a validator for `.output()` that checks each value of a feed, and ends it with 422. */
export function feedOutput<Output, Input>(value: z.ZodType<Output, Input>) {
  const frames = z.custom<FeedFrames<Input>>(
    (feed) => typeof feed === 'object' && feed !== null && Symbol.asyncIterator in feed,
  );
  return frames.transform(async function* (feed) {
    for await (const [token, given] of feed) {
      const checked = await value.safeParseAsync(given);
      if (!checked.success)
        throw new TRPCError({ code: 'UNPROCESSABLE_CONTENT', cause: checked.error });
      yield tracked(token, checked.data);
    }
  });
}
