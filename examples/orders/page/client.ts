import {
  createTRPCClient,
  createWSClient,
  httpLink,
  httpSubscriptionLink,
  splitLink,
  wsLink,
} from '@trpc/client';
import type { OrdersRouter } from '../router.ts';

/** What carries the feed. */
export type Transport = 'ws' | 'sse';

const url = new URL('/trpc', location.href).href;
// Lazy: no socket stays open while the feed comes over SSE.
const socket = createWSClient({
  url: url.replace(/^http/, 'ws'),
  lazy: { enabled: true, closeMs: 0 },
});

/** The stock client. A subscription's `context.transport` says what carries it; calls are plain HTTP. */
export const trpc = createTRPCClient<OrdersRouter>({
  links: [
    splitLink({
      condition: (op) => op.type !== 'subscription',
      true: httpLink({ url }),
      false: splitLink({
        condition: (op) => op.context.transport === 'ws',
        true: wsLink({ client: socket }),
        false: httpSubscriptionLink({ url }),
      }),
    }),
  ],
});
