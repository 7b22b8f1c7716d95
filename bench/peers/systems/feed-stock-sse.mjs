import { feedPublisher, feedRouter } from '../lib/feed.mjs';
import { serveSse } from '../lib/trpc.mjs';
import { trpcSse } from '../lib/trpc-wire.mjs';

/** The feed over server-sent events on tRPC's HTTP adapter as it is. */
export const system = {
  start: (redisUrl, options) => serveSse(feedRouter(redisUrl, options)),
  publisher: feedPublisher,
  wire: trpcSse,
};
