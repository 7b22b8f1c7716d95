import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type SseFeedsOptions, withFeeds } from '@brokerfeed/trpc/sse';
import type { DrainOptions, DrainReport } from '@brokerfeed/trpc/ws';
import { type AttachFeedsOptions, attachFeeds } from '@brokerfeed/trpc/ws';
import type { AnyTRPCRouter } from '@trpc/server';
import { type CreateHTTPHandlerOptions, createHTTPHandler } from '@trpc/server/adapters/standalone';
import { applyWSSHandler, type WSSHandlerOptions } from '@trpc/server/adapters/ws';
import { WebSocketServer } from 'ws';

export interface InstanceOptions {
  /** @default a free one */
  readonly port?: number;
  readonly sse?: SseFeedsOptions;
  readonly ws?: AttachFeedsOptions;
  readonly http?: Partial<CreateHTTPHandlerOptions<AnyTRPCRouter>>;
  readonly handler?: Partial<Omit<WSSHandlerOptions<AnyTRPCRouter>, 'wss' | 'router'>>;
}

/** One instance of a service: SSE and WebSockets on one port, both with feeds, as a target of {@link startProxy}. */
export interface TestInstance extends AsyncDisposable {
  readonly port: number;
  readonly httpUrl: string;
  readonly wsUrl: string;
  /** Whether `startProxy` sends new connections here. */
  live: boolean;
  /** What `GET /ready` answers: 200 or 503. */
  ready: boolean;
  /** Cuts every connection, as a network does. */
  cut(): void;
  /** Requests and sockets so far. */
  readonly arrivals: number;
  drain(options?: DrainOptions): Promise<{ ws: DrainReport; sse: DrainReport }>;
}

/** Starts an instance on a free port. */
export async function startInstance(
  router: AnyTRPCRouter,
  options: InstanceOptions = {},
): Promise<TestInstance> {
  const http = withFeeds({ router, ...options.http }, options.sse);
  const handler = createHTTPHandler(http);
  let ready = true;
  const server = createServer((request, response) => {
    if (request.url === '/ready') response.writeHead(ready ? 200 : 503).end();
    else handler(request, response);
  });
  const wss = new WebSocketServer({ server });
  applyWSSHandler({ wss, router, ...options.handler });
  const feeds = attachFeeds(wss, options.ws);
  const sockets = new Set<Socket>();
  let arrivals = 0;
  server.on('request', ({ url }) => {
    if (url !== '/ready') arrivals += 1;
  });
  wss.on('connection', () => {
    arrivals += 1;
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(options.port ?? 0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    httpUrl: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    live: true,
    get ready() {
      return ready;
    },
    set ready(answer) {
      ready = answer;
    },
    cut() {
      for (const socket of sockets) socket.destroy();
    },
    get arrivals() {
      return arrivals;
    },
    async drain(how) {
      const [ws, sse] = await Promise.all([feeds.drain(how), http.drain(how)]);
      return { ws, sse };
    },
    async [Symbol.asyncDispose]() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      for (const client of wss.clients) client.terminate();
      server.closeAllConnections();
      await closed;
    },
  };
}
