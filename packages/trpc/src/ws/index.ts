export type { Drainable, DrainOptions, DrainReport } from '../drain.ts';
export { type AttachFeedsOptions, attachFeeds } from './attach-feeds.ts';
