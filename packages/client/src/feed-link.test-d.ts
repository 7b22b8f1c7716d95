// Type tests, compiled by `tsc -p tsconfig.test.json`: what infers from the router, with no cast by the user.
import type { Broker } from '@brokerfeed/core';
import type { FeedErrorData, FeedReason } from '@brokerfeed/core/wire';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import {
  createTRPCClient,
  createWSClient,
  httpSubscriptionLink,
  splitLink,
  type TRPCClientError,
  wsLink,
} from '@trpc/client';
import { initTRPC } from '@trpc/server';
import superjson from 'superjson';
import { z } from 'zod';
import {
  type FeedState,
  feedLink,
  feedReason,
  fullJitter,
  isFeedControl,
  isFeedError,
  memoryStore,
  sessionStore,
} from './index.ts';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void => {};

declare const broker: Broker;
const t = initTRPC.create({ errorFormatter: withFeedErrors() });
const Order = z.object({ id: z.string() });
const router = t.router({
  orders: t.procedure
    .input(z.object({ tenant: z.string() }))
    .subscription(brokerFeed(broker, 'orders', { schema: Order, control: true })),
});

// --- The link takes its router from the client ---

const socket = createWSClient({ url: 'wss://example.org', retryDelayMs: fullJitter() });
const client = createTRPCClient<typeof router>({
  links: [
    feedLink({ store: sessionStore({ prefix: 'me:' }) }),
    splitLink({
      condition: ({ path }) => path === 'orders',
      true: wsLink({ client: socket }),
      false: httpSubscriptionLink({ url: 'https://example.org' }),
    }),
  ],
});

client.orders.subscribe(
  { tenant: 'acme' },
  {
    onData({ id, data }) {
      same<typeof id, string>();
      if (isFeedControl(data)) return;
      same<typeof data, { id: string }>();
    },
    onError(error) {
      if (!isFeedError(error)) {
        same<typeof error, TRPCClientError<typeof router>>();
        return;
      }
      same<typeof error.data.feed, FeedErrorData>();
      same<typeof error.data.feed.reason, FeedReason>();
      // What the router's own shape has is still there.
      same<typeof error.data.httpStatus, number>();
      same<typeof error.data.path, string | undefined>();
    },
  },
);

const j = initTRPC.create({ transformer: superjson, errorFormatter: withFeedErrors() });
const transformed = j.router({ orders: j.procedure.subscription(brokerFeed(broker, 'orders')) });
createTRPCClient<typeof transformed>({
  links: [feedLink(), wsLink({ client: socket, transformer: superjson })],
});

// --- Errors of which nothing is known ---

declare const error: unknown;
same<ReturnType<typeof feedReason>, FeedReason | undefined>();
feedReason(error);
if (isFeedError(error)) same<typeof error.data.feed.status, 400 | 410 | 422 | 503>();

// --- Options ---

feedLink({ store: new Map<string, string>() });
feedLink({ store: memoryStore(), retry: false });
feedLink({
  retry: { baseMs: 500, maxMs: 10_000, tries: 5, random: () => 0.5 },
  onGap: ({ reason, status }, { path, input, context }) => {
    same<typeof reason, FeedReason>();
    same<typeof status, 400 | 410 | 422 | 503>();
    same<typeof path, string>();
    same<typeof input, unknown>();
    return reason === 'trimmed' && context.board !== undefined ? 'restart' : 'error';
  },
  onFeedState: (state) => {
    same<typeof state, FeedState>();
    switch (state.state) {
      case 'attached':
      case 'catching-up':
      case 'live':
      case 'outage':
        break;
      case 'gap':
        same<typeof state.reason, FeedReason | undefined>();
        break;
      case 'lost':
        same<typeof state.retryMs, number | undefined>();
        feedReason(state.error);
        break;
      default:
        state satisfies never;
    }
  },
});
// @ts-expect-error: no such policy
feedLink({ onGap: 'skip' });
// @ts-expect-error: a store answers at once
feedLink({ store: { get: async () => 'token', set: () => {}, delete: () => {} } });
