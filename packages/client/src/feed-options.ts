import type { FeedErrorData } from '@brokerfeed/core/wire';
import { type FeedClock, systemClock } from './clock.ts';
import type { FeedState, FeedSubscription } from './feed-state.ts';
import { fullJitter, type JitterOptions } from './jitter.ts';
import type { FeedStore } from './store.ts';

/** What becomes of a subscription whose token is of no use any more. */
export type GapPolicy = 'restart' | 'error';

/** How often a feed is tried again, and after which waits. */
export interface RetryOptions extends JitterOptions {
  /**
   * Tries in a row before the error is passed on. A frame ends the row, and so does a link that stood for 5 s before it was
   * lost. @default Infinity
   */
  readonly tries?: number;
}

/** The options of `feedLink`. All may be left out. */
export interface FeedLinkOptions {
  /**
   * What becomes of a subscription that is refused or ended with 400 or 410. `'restart'` subscribes afresh, without a
   * token; entries are missing, which {@link onFeedState} tells first. `'error'` passes the error on. A function decides
   * for each gap. In all cases the token is forgotten. @default 'restart'
   */
  readonly onGap?: GapPolicy | ((gap: FeedErrorData, feed: FeedSubscription) => GapPolicy);
  /**
   * How a feed is tried again after a 502, 503 or 504 and after a lost link that tRPC gives up. `false` passes errors on,
   * and leaves SSE to the browser's own retries. @default {}
   */
  readonly retry?: RetryOptions | false;
  /**
   * Where tokens are kept beyond the end of a subscription, so that the next one with the same path and input goes on from
   * there. Without one, every `subscribe` starts afresh, as with stock tRPC. @default undefined
   */
  readonly store?: FeedStore | undefined;
  /** Is told how each feed stands. */
  readonly onFeedState?: (state: FeedState, feed: FeedSubscription) => void;
  /** Time, for tests. @default setTimeout */
  readonly clock?: FeedClock;
}

export interface ResolvedFeedLinkOptions {
  readonly onGap: GapPolicy | ((gap: FeedErrorData, feed: FeedSubscription) => GapPolicy);
  /** How often a feed is tried again in a row, and after which wait. Restarts after gaps wait likewise. */
  readonly tries: number;
  readonly delayMs: (attempt: number) => number;
  readonly store: FeedStore | undefined;
  readonly onFeedState: ((state: FeedState, feed: FeedSubscription) => void) | undefined;
  readonly clock: FeedClock;
}

/** Checks options and fills in what was left out. */
export function resolveOptions(options: FeedLinkOptions): ResolvedFeedLinkOptions {
  const { onGap = 'restart', store, onFeedState, clock = systemClock } = options;
  const { tries = Infinity, ...jitter }: RetryOptions =
    options.retry === false ? { tries: 0 } : (options.retry ?? {});
  if (typeof onGap !== 'function' && onGap !== 'restart' && onGap !== 'error') {
    throw new TypeError(`onGap is 'restart', 'error' or a function, not ${onGap}`);
  }
  if (!(tries >= 0)) throw new RangeError(`tries is a number from 0, not ${tries}`);
  return { onGap, tries, delayMs: fullJitter(jitter), store, onFeedState, clock };
}
