import type { FeedErrorData, FeedReason } from '@brokerfeed/core/wire';

/** What is known of an error that {@link isFeedError} affirmed: which status and why. */
export interface WithFeedData {
  readonly data: { readonly feed: FeedErrorData };
}

/**
 * Tells whether an error is one of a feed, from whatever link it came. `error.data` keeps the type that the router gives
 * it. Wants `withFeedErrors()` as the router's error formatter: without it nothing tells a feed's errors from others.
 */
export function isFeedError<E>(error: E): error is E & WithFeedData {
  return feedData(error) !== undefined;
}

/** Answers why a feed refused or ended, or undefined for an error that is none of a feed. */
export function feedReason(error: unknown): FeedReason | undefined {
  return feedData(error)?.reason;
}

/** Answers what an error says about its feed. */
export function feedData(error: unknown): FeedErrorData | undefined {
  const feed = dataOf(error)?.feed;
  return typeof feed?.status === 'number' && typeof feed.reason === 'string' ? feed : undefined;
}

/** Answers the HTTP status that an error stands for; undefined where it did not come from the procedure. */
export function statusOf(error: unknown): number | undefined {
  return dataOf(error)?.httpStatus;
}

interface ErrorData {
  readonly httpStatus?: number;
  readonly feed?: FeedErrorData;
}

/** What came from the server is not trusted to be anything: whoever reads it looks. */
function dataOf(error: unknown): ErrorData | null | undefined {
  return (error as { readonly data?: ErrorData | null } | null | undefined)?.data;
}
