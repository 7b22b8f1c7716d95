import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type MemoryStore, memoryBroker, memoryStore } from '@brokerfeed/core/memory';
import { withFeeds } from '@brokerfeed/trpc/sse';
import { attachFeeds } from '@brokerfeed/trpc/ws';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { applyWSSHandler } from '@trpc/server/adapters/ws';
import { WebSocketServer } from 'ws';
import { pageScript, sendPage } from './browser-page.ts';
import { NUMBERS, type NumbersContext, numbersRouter } from './numbers-router.ts';

/** A page and its router on one port, for a browser. */
export interface BrowserServer extends AsyncDisposable {
  readonly url: string;
  /** All that was appended. */
  readonly appended: readonly number[];
  /** How often the page was asked for. */
  readonly pages: number;
  /** Appends the next numbers, each a commit. */
  append(count: number): Promise<void>;
  /** Drops all commits but the newest. */
  trim(keep: number): void;
  /** Refuses everybody who says that this is their session. Those who are there are cut off. */
  endSession(name: string): void;
  /** Cuts every connection, as a network does. */
  dropSockets(): void;
  /** Takes no connections any more, and cuts those there are. */
  stop(): Promise<void>;
  /** Starts again on the same port, as another process would: on the log, with nothing in memory. */
  start(): Promise<void>;
}

export async function startBrowserServer(): Promise<BrowserServer> {
  const store = memoryStore();
  const ended = new Set<string>();
  const appended: number[] = [];
  const options = { store, ended, appended, script: await pageScript() };
  let running: Running | undefined = await listen(options, 0);
  const { port } = running;
  const writer = memoryBroker({ store });
  const stop = async (): Promise<void> => {
    await running?.stop();
    running = undefined;
  };
  return {
    url: `http://127.0.0.1:${port}`,
    appended,
    get pages() {
      return running?.pages() ?? 0;
    },
    async append(count) {
      for (let left = count; left > 0; left -= 1) {
        appended.push(appended.length + 1);
        await writer.log.append(NUMBERS, String(appended.length));
      }
    },
    trim: (keep) => store.trim(NUMBERS, keep),
    endSession(name) {
      ended.add(name);
      running?.drop();
    },
    dropSockets: () => running?.drop(),
    stop,
    async start() {
      running = await listen(options, port);
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await writer.close();
    },
  };
}

interface Running {
  readonly port: number;
  pages(): number;
  drop(): void;
  stop(): Promise<void>;
}

interface ListenOptions {
  readonly store: MemoryStore;
  readonly ended: ReadonlySet<string>;
  readonly appended: readonly number[];
  readonly script: string;
}

async function listen(options: ListenOptions, wantedPort: number): Promise<Running> {
  const { ended, appended, script } = options;
  const broker = memoryBroker({ store: options.store });
  const router = numbersRouter(broker, () => appended);
  const createContext = ({ info }: ContextOptions): NumbersContext => ({
    isSignedIn: !ended.has(info.connectionParams?.session ?? ''),
  });
  const trpc = createHTTPHandler(withFeeds({ router, createContext, basePath: '/trpc/' }));
  let pages = 0;
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/trpc/')) return trpc(request, response);
    if (request.url?.startsWith('/?')) pages += 1;
    sendPage(request, response, script);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const wss = new WebSocketServer({ server, path: '/trpc' });
  applyWSSHandler({ wss, router, createContext });
  attachFeeds(wss);
  server.listen(wantedPort, '127.0.0.1');
  await once(server, 'listening');
  const drop = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    pages: () => pages,
    drop,
    async stop() {
      await closeServer(server, drop);
      await broker.close();
    },
  };
}

interface ContextOptions {
  readonly info: { readonly connectionParams: { readonly session?: string } | null };
}

async function closeServer(server: Server, drop: () => void): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  drop();
  await closed;
}
