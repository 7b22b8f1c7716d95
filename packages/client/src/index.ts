export type { FeedControl, FeedErrorData, FeedReason } from '@brokerfeed/core/wire';
export type { FeedClock } from './clock.ts';
export { feedReason, isFeedError, type WithFeedData } from './feed-error.ts';
export { feedLink } from './feed-link.ts';
export type { FeedLinkOptions, GapPolicy, RetryOptions } from './feed-options.ts';
export { type FeedState, type FeedSubscription, isFeedControl } from './feed-state.ts';
export { fullJitter, type JitterOptions } from './jitter.ts';
export { type FeedStore, memoryStore, type SessionStoreOptions, sessionStore } from './store.ts';
