export type { FeedEntry, FeedGap } from '@brokerfeed/core';
export type { FeedControl, FeedErrorData, FeedLag, FeedReason } from '@brokerfeed/core/wire';
export { brokerFeed, type FeedOutput, type FeedResolver } from './broker-feed.ts';
export {
  type ErrorFormatterOptions,
  type WithFeedData,
  withFeedErrors,
} from './error-formatter.ts';
export { FeedError } from './feed-error.ts';
export { type FeedInputBuilder, feedInput } from './feed-input.ts';
export type { BrokerFeedOptions, TopicFeedOptions } from './feed-options.ts';
export type {
  ControlValue,
  Decode,
  Decoded,
  FeedArgs,
  FeedInput,
  FeedResolverOptions,
  MappedValue,
  SnapshotValue,
} from './feed-types.ts';
export type { FeedTopic, TopicParams } from './topic-option.ts';
export {
  type WatchDecode,
  type WatchFeedOptions,
  type WatchOutput,
  type WatchResolver,
  watchFeed,
} from './watch-feed.ts';
