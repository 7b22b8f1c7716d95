// Type tests, compiled by `tsc -p tsconfig.test.json`: validators of a feed's values, by tRPC's `.output()`.
import { type Broker, defineTopic } from '@brokerfeed/core';
import type { FeedControl, FeedLag } from '@brokerfeed/core/wire';
import { createTRPCClient, wsLink } from '@trpc/client';
import { initTRPC, type TrackedEnvelope, tracked } from '@trpc/server';
import { z } from 'zod';
import { brokerFeed, type FeedOutput, type WatchOutput, watchFeed } from './index.ts';

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

// --- A validator does not decide what a feed sends: without `map`, that is what the entries are ---

const orders = defineTopic({ name: (of: { tenant: string }) => of.tenant, schema: Order });
const acme = { params: () => ({ tenant: 'acme' }) };
const feedOf = <Value>() => t.procedure.output(z.custom<FeedOutput<Value>>());
const watchOf = <Value>() => t.procedure.output(z.custom<WatchOutput<Value>>());

interface Other {
  readonly id: number;
}
// @ts-expect-error - the JSON of an entry is of an unknown type
feedOf<Other>().subscription(brokerFeed(broker, 'orders'));
// @ts-expect-error - the schema's values are others
feedOf<Other>().subscription(brokerFeed(broker, 'orders', { schema: Order }));
// @ts-expect-error - so are the topic's
feedOf<Other>().subscription(brokerFeed(broker, orders, acme));
// @ts-expect-error - a text is none
feedOf<Other>().subscription(brokerFeed(broker, 'orders', { decode: 'text' }));
// @ts-expect-error - nor is what `decode` answers
feedOf<Other>().subscription(brokerFeed(broker, 'orders', { decode: (text) => text.length }));
// @ts-expect-error - nor what `prepare` does
feedOf<Other>().subscription(brokerFeed(broker, 'orders', { schema: Order, prepare: (o) => o.id }));
// @ts-expect-error - nor what `map` does
feedOf<Other>().subscription(brokerFeed(broker, 'orders', { schema: Order, map: (o) => o.id }));
// @ts-expect-error - nor the items of a snapshot
feedOf<Order>().subscription(brokerFeed(broker, 'orders', { schema: Order, onGap: () => [1] }));
// @ts-expect-error - the JSON of an event is of an unknown type
watchOf<Other>().subscription(watchFeed(broker, 'orders'));
// @ts-expect-error - the schema's values are others
watchOf<Other>().subscription(watchFeed(broker, 'orders', { schema: Order }));
// @ts-expect-error - so are the topic's
watchOf<Other>().subscription(watchFeed(broker, orders, acme));

// A wider one takes them, and what it names is what clients see.
const wider = t.router({
  json: feedOf<unknown>().subscription(brokerFeed(broker, 'orders')),
  schema: feedOf<{ id: string }>().subscription(brokerFeed(broker, 'orders', { schema: Order })),
  topic: feedOf<Order>().subscription(brokerFeed(broker, orders, acme)),
  text: feedOf<string>().subscription(brokerFeed(broker, 'orders', { decode: 'text' })),
  decoded: feedOf<number>().subscription(
    brokerFeed(broker, 'orders', { decode: (text) => text.length }),
  ),
  prepared: feedOf<string>().subscription(
    brokerFeed(broker, 'orders', { schema: Order, prepare: (order) => order.id }),
  ),
  mapped: feedOf<{ kind: 'order' }>().subscription(
    brokerFeed(broker, 'orders', { schema: Order, map: () => ({ kind: 'order' }) as const }),
  ),
  snapshot: feedOf<Order | { kind: 'all' }>().subscription(
    brokerFeed(broker, 'orders', { schema: Order, onGap: () => ({ kind: 'all' }) as const }),
  ),
  watch: watchOf<Order>().subscription(watchFeed(broker, 'orders', { schema: Order })),
  topicWatch: watchOf<Order>().subscription(watchFeed(broker, orders, acme)),
});
declare const widerSocket: typeof socket;
const seen = createTRPCClient<typeof wider>({ links: [wsLink({ client: widerSocket })] });
seen.schema.subscribe(undefined, { onData: ({ data }) => same<typeof data, { id: string }>() });
seen.topic.subscribe(undefined, { onData: ({ data }) => same<typeof data, Order>() });
seen.watch.subscribe(undefined, { onData: (data) => same<typeof data, Order | FeedLag>() });

// --- The union of a feed without a validator stays one: it narrows by its members ---

type Change = { kind: 'add'; item: Order } | { kind: 'remove'; id: string };
const changing = t.router({
  feed: t.procedure.subscription(
    brokerFeed(broker, 'changes', { decode: (text): Change => JSON.parse(text), control: true }),
  ),
});
declare const changeSocket: typeof socket;
createTRPCClient<typeof changing>({
  links: [wsLink({ client: changeSocket })],
}).feed.subscribe(undefined, {
  onData({ data }) {
    same<typeof data, Change | FeedControl>();
    if ('kind' in data && data.kind === 'add') same<typeof data.item, Order>();
  },
});
