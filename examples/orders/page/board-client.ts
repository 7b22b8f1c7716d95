import { type FeedState, feedLink, fullJitter, sessionStore } from '@brokerfeed/client';
import {
  createTRPCClient,
  createWSClient,
  httpLink,
  httpSubscriptionLink,
  splitLink,
  type TRPCClient,
  wsLink,
} from '@trpc/client';
import type { OrdersRouter } from '../router.ts';
import { Line } from './line.ts';

/** What carries a feed. */
export type Transport = 'ws' | 'sse';

/** Where the page's router is. */
export const TRPC_URL: string = new URL('/trpc', location.href).href;

/** How long a client waits before it tries again: shorter than the defaults, since somebody watches. */
const RETRY = { baseMs: 300, maxMs: 2_000 } as const;

/** One client of the feed, with a line of its own that can be cut. Calls do not go over that line. */
export class BoardClient {
  readonly name: string;
  readonly line: Line = new Line();
  readonly trpc: TRPCClient<OrdersRouter>;
  /** Read when a subscription is made. */
  transport: Transport;
  readonly #listeners = new Set<(state: FeedState) => void>();

  /** `name` tells the client's token from those of others in the same tab. */
  constructor(name: string, transport: Transport) {
    this.name = name;
    this.transport = transport;
    const { WebSocket, EventSource } = this.line;
    const socket = createWSClient({
      url: TRPC_URL.replace(/^http/, 'ws'),
      WebSocket,
      retryDelayMs: fullJitter(RETRY),
      // No socket stays open while the feed comes over SSE.
      lazy: { enabled: true, closeMs: 0 },
    });
    this.trpc = createTRPCClient<OrdersRouter>({
      links: [
        feedLink({
          store: sessionStore({ prefix: `orders:${name}:` }),
          retry: RETRY,
          onFeedState: (state) => {
            for (const listener of this.#listeners) listener(state);
          },
        }),
        splitLink({
          condition: ({ type }) => type === 'subscription',
          false: httpLink({ url: TRPC_URL }),
          true: splitLink({
            condition: () => this.transport === 'ws',
            true: wsLink({ client: socket }),
            false: httpSubscriptionLink({ url: TRPC_URL, EventSource }),
          }),
        }),
      ],
    });
  }

  /** Listens to how the feed stands. Returns what ends it. */
  onFeedState(listener: (state: FeedState) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}
