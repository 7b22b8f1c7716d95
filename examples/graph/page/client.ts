import { createTRPCClient, httpLink, httpSubscriptionLink, splitLink } from '@trpc/client';
import type { GraphRouter } from '../router.ts';

const url = new URL('/trpc', location.href).href;

/** The stock client: the feed comes over SSE, and the browser sees to reconnections. */
export const trpc = createTRPCClient<GraphRouter>({
  links: [
    splitLink({
      condition: (op) => op.type === 'subscription',
      true: httpSubscriptionLink({ url }),
      false: httpLink({ url }),
    }),
  ],
});
