import type { FeedErrorData } from '@brokerfeed/core/wire';
import type { TRPCDefaultErrorShape, TRPCErrorFormatter, TRPCErrorShape } from '@trpc/server';
import { FeedError } from './feed-error.ts';

/** An error shape whose `data` says, for an error of a feed, which status it stands for and why. */
export type WithFeedData<Shape extends TRPCErrorShape> = Omit<Shape, 'data'> & {
  readonly data: Shape['data'] & { readonly feed?: FeedErrorData };
};

/** What an error formatter is called with. */
export type ErrorFormatterOptions<Context> = Parameters<
  TRPCErrorFormatter<Context, TRPCErrorShape>
>[0];

/**
 * Makes the root `errorFormatter` that shows clients the errors of feeds: `data.httpStatus` is the real status, 410 too,
 * and `data.feed` is `{ status, reason }`. Other errors, and the rest of the shape, stay as tRPC or the given formatter
 * makes them.
 *
 * Prefer it to `.errors()` of a procedure, which wraps the iterable and so costs every message.
 */
export function withFeedErrors<
  Context = unknown,
  Shape extends TRPCErrorShape = TRPCDefaultErrorShape,
>(
  formatter?: (options: ErrorFormatterOptions<Context>) => Shape,
): (options: ErrorFormatterOptions<Context>) => WithFeedData<Shape> {
  return (options) => {
    const { error } = options;
    // Without a formatter, Shape is the default shape.
    const format = formatter ?? ((plain) => plain.shape as TRPCErrorShape as Shape);
    if (!(error instanceof FeedError)) return format(options);
    const status = error.httpStatus;
    const shape = format({
      ...options,
      shape: { ...options.shape, data: { ...options.shape.data, httpStatus: status } },
    });
    return {
      ...shape,
      data: { ...shape.data, feed: { status, reason: error.reason } },
    };
  };
}
