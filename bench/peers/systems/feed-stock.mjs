import { feedPublisher, feedRouter } from '../lib/feed.mjs';
import { serveWs } from '../lib/trpc.mjs';
import { trpcWs } from '../lib/trpc-wire.mjs';

/** The feed on tRPC's WebSocket adapter as it is: pulled, value by value. */
export const system = {
  start: (redisUrl, options) => serveWs(feedRouter(redisUrl, options)),
  publisher: feedPublisher,
  wire: trpcWs,
};
