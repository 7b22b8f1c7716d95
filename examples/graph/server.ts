import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withFeeds } from '@brokerfeed/trpc/sse';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { serveFiles } from './page.ts';
import { type GraphRouterOptions, graphRouter } from './router.ts';

export interface GraphServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Serves the page at `/`, and the router at `/trpc`: calls, and the feed over SSE. Port 0 takes a free one. */
export async function startServer(options: GraphRouterOptions, port: number): Promise<GraphServer> {
  const router = graphRouter(options);
  const trpc = createHTTPHandler(withFeeds({ router, basePath: '/trpc/' }));
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/trpc/')) trpc(request, response);
    else void serveFiles(request, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
      await options.broker.close();
    },
  };
}
