export type { Drainable, DrainOptions, DrainReport } from '../drain.ts';
export { type SseFeedsOptions, withFeeds } from './with-feeds.ts';
