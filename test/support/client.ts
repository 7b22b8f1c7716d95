import {
  createTRPCClient,
  createWSClient,
  httpSubscriptionLink,
  type TRPCClient,
  type TRPCLink,
  wsLink,
} from '@trpc/client';
import type { AnyTRPCRouter } from '@trpc/server';
import { EventSource } from 'eventsource';
import { WebSocket } from 'ws';
import type { TestServer } from './server.ts';

/** The stock links that a test runs over. */
export const TRANSPORTS = ['ws', 'sse'] as const;
export type Transport = (typeof TRANSPORTS)[number];

/** A stock tRPC client that ends with its scope. */
export interface TestClient<Router extends AnyTRPCRouter> extends AsyncDisposable {
  readonly trpc: TRPCClient<Router>;
}

/** How soon a client comes back, in milliseconds: the defaults (up to 30 s, and 3 s) only make tests slow. */
const RECONNECT_MS = 20;

/** Connects a stock client over one transport, with other links before the stock one if any are given. */
export function connect<Router extends AnyTRPCRouter>(
  server: Pick<TestServer, 'httpUrl' | 'wsUrl'>,
  transport: Transport,
  links: Links = [],
): TestClient<Router> {
  // The router is not known here, so neither is whether its transformer must be named; these tests use none.
  const untyped =
    transport === 'ws' ? overWebSocket(server.wsUrl, links) : overEvents(server.httpUrl, links);
  return untyped as TestClient<AnyTRPCRouter> as TestClient<Router>;
}

type Links = readonly TRPCLink<AnyTRPCRouter>[];

function overWebSocket(url: string, links: Links): TestClient<AnyTRPCRouter> {
  const socket = createWSClient({
    url,
    retryDelayMs: () => RECONNECT_MS,
    // Node 20 has no WebSocket of its own. That of ws is typed apart from the browser's.
    WebSocket: WebSocket as unknown as typeof globalThis.WebSocket,
  });
  const trpc = createTRPCClient<AnyTRPCRouter>({ links: [...links, wsLink({ client: socket })] });
  return { trpc, [Symbol.asyncDispose]: async () => socket.close() };
}

function overEvents(url: string, links: Links): TestClient<AnyTRPCRouter> {
  const left = new AbortController();
  const link = httpSubscriptionLink({
    url,
    EventSource,
    eventSourceOptions: { fetch: (input, init) => fetchWithRetry(input, init, left.signal) },
  });
  const trpc = createTRPCClient<AnyTRPCRouter>({ links: [...links, link] });
  return { trpc, [Symbol.asyncDispose]: async () => left.abort() };
}

/** Fetches an event stream, and puts before it the line by which a server sets the reconnection time. */
async function fetchWithRetry(
  input: string | URL,
  init: RequestInit,
  left: AbortSignal,
): Promise<Response> {
  const signal = init.signal ? AbortSignal.any([init.signal, left]) : left;
  const response = await fetch(input, { ...init, signal });
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>({
    start: (controller) =>
      controller.enqueue(new TextEncoder().encode(`retry: ${RECONNECT_MS}\n\n`)),
  });
  // A cut stream ends here as a cut one; the reader sees the same error.
  response.body?.pipeTo(writable).catch(() => {});
  return new Response(response.body === null ? null : readable, response);
}
