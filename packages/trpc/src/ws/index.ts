export { type AttachFeedsOptions, attachFeeds } from './attach-feeds.ts';
