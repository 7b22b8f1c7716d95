import { FeedRefusal } from '@brokerfeed/core';
import { FEED_STATUS, type FeedErrorData, type FeedReason } from '@brokerfeed/core/wire';
import { type TRPC_ERROR_CODE_KEY, TRPCError } from '@trpc/server';

/**
 * The tRPC code that carries each status. tRPC knows no 410, and its WebSocket client dies of an unknown code, so a 410
 * travels as the code of 412: one that its SSE client does not retry with the same dead id. A 503 it does retry.
 */
const CARRIERS = {
  400: 'BAD_REQUEST',
  410: 'PRECONDITION_FAILED',
  422: 'UNPROCESSABLE_CONTENT',
  503: 'SERVICE_UNAVAILABLE',
} as const satisfies Record<FeedErrorData['status'], TRPC_ERROR_CODE_KEY>;

/**
 * A feed that was refused or has ended. Clients see `httpStatus` and `reason` where the router's root error formatter is
 * {@link withFeedErrors}; without it a 410 looks like a 412.
 *
 * Its `name` stays `TRPCError`: where a program holds two copies of tRPC, the name is all that tells one of its errors.
 */
export class FeedError extends TRPCError {
  readonly httpStatus: FeedErrorData['status'];
  readonly reason: FeedReason;

  constructor(reason: FeedReason, message: string, options?: ErrorOptions) {
    const httpStatus = FEED_STATUS[reason];
    super({ code: CARRIERS[httpStatus], message, cause: options?.cause });
    this.httpStatus = httpStatus;
    this.reason = reason;
  }
}

/** Turns a refusal of the engine into a {@link FeedError}. What user code threw passes through as it is. */
export function toFeedError(error: unknown): unknown {
  return error instanceof FeedRefusal
    ? new FeedError(error.reason, error.message, { cause: error })
    : error;
}
