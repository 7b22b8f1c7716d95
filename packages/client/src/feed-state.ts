import type { FeedControl, FeedReason } from '@brokerfeed/core/wire';

/** How a feed stands. `catching-up`, `live` and `outage` are told only by feeds whose `control` option is on. */
export type FeedState =
  /**
   * The subscription stands, at first or again: nothing after this is missed. What was missed before follows. Told at once
   * where the feed's `control` option is on, else with the first frame; over WebSockets also when a known feed is resumed.
   */
  | { readonly state: 'attached' }
  /** What was missed is on its way: entries, or the values of a snapshot. */
  | { readonly state: 'catching-up' }
  /** All that there was has come. What is appended from now on comes as it is appended. */
  | { readonly state: 'live' }
  /** The server cannot read the log now. Entries come when it can; nothing needs to be done. */
  | { readonly state: 'outage' }
  /**
   * Entries are missing. With a reason, the subscription starts afresh, or ends, as `onGap` says. Without one, the server
   * answers with a snapshot: its values follow, if it has any.
   */
  | { readonly state: 'gap'; readonly reason: FeedReason | undefined }
  /**
   * The link or the server was lost. It is tried again in so many milliseconds, sooner if the browser comes online or the page is shown; or
   * when the link behind, such as `wsLink`, comes back by itself: then without a number.
   */
  | { readonly state: 'lost'; readonly error: Error; readonly retryMs: number | undefined };

/** The subscription that something is about, as the caller made it. */
export interface FeedSubscription {
  readonly path: string;
  readonly input: unknown;
  /** tRPC's context of the call: `subscribe(input, { context })`. */
  readonly context: Readonly<Record<string, unknown>>;
}

const CONTROLS: Readonly<Record<FeedControl['feed'], true>> = {
  attached: true,
  position: true,
  'catching-up': true,
  live: true,
  outage: true,
};

/** Tells a control frame's value from the application's: for types that name both, and for clients without the link. */
export function isFeedControl(value: unknown): value is FeedControl {
  if (typeof value !== 'object' || value === null || Object.keys(value).length !== 1) return false;
  return 'feed' in value && Object.hasOwn(CONTROLS, value.feed as string);
}
