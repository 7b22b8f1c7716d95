export { type SseFeedsOptions, withFeeds } from './with-feeds.ts';
