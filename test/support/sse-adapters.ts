import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Drainable, withFeeds } from '@brokerfeed/trpc/sse';
import type { AnyTRPCRouter } from '@trpc/server';
import { createExpressMiddleware } from '@trpc/server/adapters/express';
import { fastifyTRPCPlugin } from '@trpc/server/adapters/fastify';
import { fetchRequestHandler } from '@trpc/server/adapters/fetch';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import express from 'express';
import { fastify } from 'fastify';
import type { StreamServer } from './event-streams.ts';

/** tRPC's adapters that serve event streams. */
export type SseAdapter = 'standalone' | 'express' | 'fastify' | 'fetch';

/** A router behind one of them. */
export interface AdapterServer extends StreamServer {
  readonly wsUrl: '';
  /** What `withFeeds` answered, where it was asked. */
  readonly feeds: Drainable | undefined;
}

/** What a test's context is made of, whatever the adapter's request is: the header that names the user. */
export interface AdapterContext {
  readonly user: string;
}

const PREFIX = '/trpc';

/** Starts a server on a free port, with `withFeeds` around the adapter's options or without. */
export async function startAdapterServer(
  adapter: SseAdapter,
  router: AnyTRPCRouter,
  feeds: boolean,
): Promise<AdapterServer> {
  const { server, drainable, ready } = serverOf(adapter, router, feeds);
  const sockets: Socket[] = [];
  server.on('connection', (socket) => sockets.push(socket));
  await ready?.();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    httpUrl: `http://127.0.0.1:${port}${PREFIX}`,
    wsUrl: '',
    sockets,
    feeds: drainable,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

interface Made {
  readonly server: Server;
  readonly drainable?: Drainable | undefined;
  readonly ready?: () => PromiseLike<unknown>;
}

function serverOf(adapter: SseAdapter, router: AnyTRPCRouter, feeds: boolean): Made {
  const around = <Options extends { readonly router: AnyTRPCRouter }>(
    options: Options,
  ): { readonly options: Options; readonly drainable: Drainable | undefined } => {
    if (!feeds) return { options, drainable: undefined };
    const drainable = withFeeds(options);
    return { options: drainable, drainable };
  };
  // What the Node adapters give has headers of one kind.
  const createContext = ({ req }: { req: Pick<IncomingMessage, 'headers'> }): AdapterContext => ({
    user: String(req.headers['x-user']),
  });
  switch (adapter) {
    case 'standalone': {
      const { options, drainable } = around({ router, createContext, basePath: `${PREFIX}/` });
      return { server: createServer(createHTTPHandler(options)), drainable };
    }
    case 'express': {
      const { options, drainable } = around({ router, createContext });
      const app = express();
      app.use(express.json());
      app.use(PREFIX, createExpressMiddleware(options));
      return { server: createServer(app), drainable };
    }
    case 'fastify': {
      const { options, drainable } = around({ router, createContext });
      const app = fastify();
      app.register(fastifyTRPCPlugin, { prefix: PREFIX, trpcOptions: options });
      return { server: app.server, drainable, ready: () => app.ready() };
    }
    case 'fetch': {
      const { options, drainable } = around({
        router,
        createContext: ({ req }: { req: Request }): AdapterContext => ({
          user: String(req.headers.get('x-user')),
        }),
        endpoint: PREFIX,
      });
      return {
        server: createServer(bridge((req) => fetchRequestHandler({ ...options, req }))),
        drainable,
      };
    }
    default:
      return adapter satisfies never;
  }
}

/** Serves what answers web requests, as hosts for these do. */
function bridge(answer: (request: Request) => Promise<Response>): RequestListener {
  return (req, res) => {
    respond(answer, req, res).catch(() => res.destroy());
  };
}

async function respond(
  answer: (request: Request) => Promise<Response>,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  const left = new AbortController();
  res.on('close', () => left.abort());
  const url = `http://${req.headers.host}${req.url}`;
  const headers = new Headers(req.headers as Record<string, string>);
  const response = await answer(new Request(url, { headers, signal: left.signal }));
  res.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) res.end();
  else await pipeline(Readable.fromWeb(response.body as never), res);
}
