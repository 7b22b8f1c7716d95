// Type tests, compiled by `tsc -p tsconfig.test.json`: validators of a feed's values, by tRPC's `.output()`.
import type { Broker } from '@brokerfeed/core';
import type { FeedControl } from '@brokerfeed/core/wire';
import { createTRPCClient, wsLink } from '@trpc/client';
import { initTRPC, type TrackedEnvelope, tracked } from '@trpc/server';
import { z } from 'zod';
import { brokerFeed, type FeedOutput } from './index.ts';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void => {};

declare const broker: Broker;
interface Context {
  readonly user: { readonly id: string };
}
const t = initTRPC.context<Context>().create();

const Order = z.object({ id: z.string(), total: z.number() });
type Order = z.infer<typeof Order>;
const Public = z.object({ id: z.string(), total: z.number().transform((total) => `${total}`) });

/** The recipe. */
function feedOutput<Output, Input>(value: z.ZodType<Output, Input>) {
  return z
    .custom<AsyncIterable<TrackedEnvelope<Input>, void, unknown>>()
    .transform(async function* (feed) {
      for await (const [token, given] of feed) yield tracked(token, value.parse(given));
    });
}

const appRouter = t.router({
  checked: t.procedure.output(feedOutput(Public)).subscription(
    brokerFeed(broker, ({ ctx }) => `orders.${ctx.user.id}`, {
      schema: Order,
      filter: (order, { ctx }) => {
        same<typeof order, Order>();
        same<typeof ctx.user, Context['user']>();
        return true;
      },
    }),
  ),
  whole: t.procedure
    .output(z.custom<FeedOutput<Order>>())
    .subscription(brokerFeed(broker, 'orders', { schema: Order })),
  control: t.procedure
    .output(feedOutput(z.union([Public, z.custom<FeedControl>()])))
    .subscription(brokerFeed(broker, 'orders', { schema: Order, control: true })),
});

declare const socket: Parameters<typeof wsLink>[0]['client'];
const client = createTRPCClient<typeof appRouter>({ links: [wsLink({ client: socket })] });

client.checked.subscribe(undefined, {
  onData({ id, data }) {
    same<typeof id, string>();
    same<typeof data, { id: string; total: string }>();
  },
});
client.whole.subscribe(undefined, { onData: ({ data }) => same<typeof data, Order>() });
client.control.subscribe(undefined, {
  onData: ({ data }) => same<typeof data, { id: string; total: string } | FeedControl>(),
});

// --- What the types refuse ---

t.procedure
  .output(feedOutput(Public))
  // @ts-expect-error - control frames are not what the validator takes
  .subscription(brokerFeed(broker, 'orders', { schema: Order, control: true }));
t.procedure
  .output(Order)
  // @ts-expect-error - a validator of one value is given the iterable
  .subscription(brokerFeed(broker, 'orders', { schema: Order }));
t.procedure
  .output(feedOutput(z.object({ id: z.number() })))
  // @ts-expect-error - a number is not what the feed has there
  .subscription((opts) => brokerFeed(broker, 'orders', { schema: Order })(opts));
