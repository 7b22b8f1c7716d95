import type { Broker } from '@brokerfeed/core';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { initTRPC } from '@trpc/server';
import { z } from 'zod';
import type { OrderStore } from './order-store.ts';

/** An order. Its id is made by whoever places it, so that placing it twice is placing it once. */
export const Order = z.object({
  id: z.uuid(),
  item: z.string().min(1).max(80),
  quantity: z.int().min(1).max(999),
  /** Where it was placed, and the how manieth it was there: what one till placed has no holes, so a page can count what it missed. */
  receipt: z.object({ till: z.string().max(40), number: z.int().min(1) }).optional(),
});
export type Order = z.infer<typeof Order>;

export interface OrdersRouterOptions {
  readonly broker: Broker;
  /** The application's own database. */
  readonly store: OrderStore;
  /** Signs resume tokens: the same on every instance, at least 16 bytes. */
  readonly secret: string;
}

export type OrdersRouter = ReturnType<typeof ordersRouter>;

const TOPIC = 'orders';

const t = initTRPC.create({
  errorFormatter: withFeedErrors(),
  // Without pings neither side notices an SSE connection that died without a word.
  sse: {
    ping: { enabled: true, intervalMs: 5_000 },
    client: { reconnectAfterInactivityMs: 15_000 },
  },
});

/** Makes the router: the feed, and the two procedures that a board needs beside it. */
export function ordersRouter({ broker, store, secret }: OrdersRouterOptions) {
  return t.router({
    orders: {
      feed: t.procedure.subscription(
        brokerFeed(broker, TOPIC, {
          schema: Order,
          secret,
          // The first frame says `attached`: what is read from the database after it misses nothing.
          control: { idleMs: 5_000 },
          onGap: async ({ gap }) => ({ reason: gap.reason, snapshot: await store.recent() }),
        }),
      ),
      recent: t.procedure.query(() => store.recent()),
      place: t.procedure.input(Order).mutation(async ({ input: order }) => {
        // The database first: whoever attached before the append finds the order in one or the other.
        await store.add(order);
        await broker.log.append(TOPIC, JSON.stringify(order), { idempotencyKey: order.id });
      }),
    },
  });
}
