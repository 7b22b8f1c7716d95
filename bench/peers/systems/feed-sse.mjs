import { withFeeds } from '@brokerfeed/trpc/sse';
import { feedPublisher, feedRouter } from '../lib/feed.mjs';
import { serveSse } from '../lib/trpc.mjs';
import { trpcSse } from '../lib/trpc-wire.mjs';

/** The feed over server-sent events, its events written beside tRPC's handler. */
export const system = {
  start: (redisUrl, options) => serveSse(feedRouter(redisUrl, options), withFeeds),
  publisher: feedPublisher,
  wire: trpcSse,
};
