import { attachFeeds } from '@brokerfeed/trpc/ws';
import { feedPublisher, feedRouter } from '../lib/feed.mjs';
import { serveWs } from '../lib/trpc.mjs';
import { trpcWs } from '../lib/trpc-wire.mjs';

/** The feed beside tRPC's WebSocket adapter, attached. */
export const system = {
  start: (redisUrl, options) => serveWs(feedRouter(redisUrl, options), attachFeeds),
  publisher: feedPublisher,
  wire: trpcWs,
};
