import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { AnyTRPCRouter, inferRouterContext } from '@trpc/server';
import { createHTTPServer } from '@trpc/server/adapters/standalone';
import { applyWSSHandler } from '@trpc/server/adapters/ws';
import { WebSocketServer } from 'ws';

/** A router served over tRPC's own adapters: SSE on `httpUrl`, WebSockets on `wsUrl`, one port. */
export interface TestServer extends AsyncDisposable {
  readonly httpUrl: string;
  readonly wsUrl: string;
  /** Connections accepted since the server was started. */
  readonly connections: number;
  /** Cuts every connection, as a proxy or a network does. */
  dropSockets(): void;
  /** Tells WebSocket clients to move to a new socket. */
  broadcastReconnect(): void;
  /** Stops the server and starts it again on the same port, with another router if one is given. */
  restart(router?: AnyTRPCRouter): Promise<void>;
}

export interface ServeOptions<Router extends AnyTRPCRouter> {
  readonly createContext?: (request: IncomingMessage) => inferRouterContext<Router>;
}

/** Starts a server on a free port. */
export async function startServer<Router extends AnyTRPCRouter>(
  router: Router,
  options: ServeOptions<Router> = {},
): Promise<TestServer> {
  let running = await listen(router, options, 0);
  const { port } = running;
  return {
    httpUrl: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    get connections() {
      return running.connections();
    },
    dropSockets: () => running.drop(),
    broadcastReconnect: () => running.broadcastReconnect(),
    async restart(next = router) {
      await running.stop();
      running = await listen(next, options, port);
    },
    [Symbol.asyncDispose]: () => running.stop(),
  };
}

interface Running {
  readonly port: number;
  connections(): number;
  drop(): void;
  broadcastReconnect(): void;
  stop(): Promise<void>;
}

async function listen<Router extends AnyTRPCRouter>(
  router: Router,
  options: ServeOptions<Router>,
  port: number,
): Promise<Running> {
  const createContext = ({ req }: { req: IncomingMessage }) => options.createContext?.(req) ?? {};
  const server: Server = createHTTPServer({ router, createContext });
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const wss = new WebSocketServer({ server });
  const handler = applyWSSHandler({ wss, router, createContext });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    drop,
    broadcastReconnect: handler.broadcastReconnectNotification,
    async stop() {
      wss.close();
      const closed = once(server, 'close');
      server.close();
      drop();
      await closed;
    },
  };
}
