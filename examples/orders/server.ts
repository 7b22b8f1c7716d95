import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { withFeeds } from '@brokerfeed/trpc/sse';
import { attachFeeds, type DrainOptions } from '@brokerfeed/trpc/ws';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { applyWSSHandler } from '@trpc/server/adapters/ws';
import { WebSocketServer } from 'ws';
import { serveFiles } from './page.ts';
import { answerReady } from './ready.ts';
import { type OrdersRouterOptions, ordersRouter } from './router.ts';

export interface ServerOptions extends OrdersRouterOptions {
  /** 0 takes a free one. */
  readonly port: number;
  /** How long feeds may be without their log before `/ready` says so, in milliseconds. */
  readonly maxStallMs?: number;
}

export interface OrdersServer {
  readonly port: number;
  /** Moves all clients to other servers, a few at a time. */
  drain(options: DrainOptions): Promise<void>;
  close(): Promise<void>;
}

/**
 * Serves the page at `/` and the router at `/trpc`: calls and SSE over HTTP, and WebSockets, on one port; and `/ready` for a
 * load balancer.
 */
export async function startServer(options: ServerOptions): Promise<OrdersServer> {
  const router = ordersRouter(options);
  const http = withFeeds({ router, basePath: '/trpc/' });
  const trpc = createHTTPHandler(http);
  const { broker, maxStallMs } = options;
  let leaving = false;
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/trpc/')) trpc(request, response);
    else if (request.url === '/ready') answerReady(response, broker, leaving, maxStallMs);
    else void serveFiles(request, response);
  });
  const wss = new WebSocketServer({ server, path: '/trpc' });
  applyWSSHandler({ wss, router, keepAlive: { enabled: true } });
  const sockets = attachFeeds(wss);
  server.listen(options.port, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    async drain(how) {
      leaving = true;
      await Promise.all([sockets.drain(how), http.drain(how)]);
    },
    async close() {
      // Connections before the broker: a client that is cut off comes back and resumes, one that is told of a closing
      // broker (503) gives up over WebSockets.
      const closed = once(server, 'close');
      server.close();
      for (const client of wss.clients) client.terminate();
      server.closeAllConnections();
      await closed;
      await options.broker.close();
    },
  };
}
