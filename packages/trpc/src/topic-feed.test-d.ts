// Type tests, compiled by `tsc -p tsconfig.test.json`: what feeds and watches of a defined topic infer.
import { type Broker, defineTopic, type Position, type WatchEvent } from '@brokerfeed/core';
import type { FeedControl, FeedLag } from '@brokerfeed/core/wire';
import { createTRPCClient, wsLink } from '@trpc/client';
import { initTRPC } from '@trpc/server';
import { z } from 'zod';
import { brokerFeed, watchFeed } from './index.ts';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void => {};

declare const broker: Broker;
interface Context {
  readonly user: { readonly id: string };
}
const Order = z.object({ id: z.string(), at: z.coerce.date(), note: z.string().default('') });
type Order = z.output<typeof Order>;

const t = initTRPC.context<Context>().create();
const tenant = z.object({ tenant: z.string() });

// --- A definition infers its params from `name`, its values from the schema ---

const orders = defineTopic({
  name: (params: { tenant: string }) => `orders.${params.tenant}`,
  schema: Order,
  idempotencyKey: (order, params) => {
    same<typeof order, z.input<typeof Order>>();
    same<typeof params, { tenant: string }>();
    return order.id;
  },
  headers: (params) => ({ tenant: params.tenant }),
});

const at = new Date();
same<ReturnType<typeof orders.name>, string>();
same<ReturnType<typeof orders.append>, Promise<Position>>();
same<ReturnType<typeof orders.parse>, Promise<Order>>();
void orders.append(broker, { tenant: 'acme' }, { id: 'a', at });
void orders.appendAll(broker, { tenant: 'acme' }, [{ id: 'a', at, note: 'x' }]);
orders.announce(broker, { tenant: 'acme' }, () => ({ id: 'a', at }));
// @ts-expect-error - no such params
void orders.append(broker, { tenants: 'acme' }, { id: 'a', at });
// @ts-expect-error - not a value of the topic
void orders.append(broker, { tenant: 'acme' }, { id: 5, at });
// @ts-expect-error - nor is this
orders.announce(broker, { tenant: 'acme' }, () => ({ id: 'a', when: at }));
// @ts-expect-error - a list is a commit, and not a value
void orders.append(broker, { tenant: 'acme' }, [{ id: 'a', at }]);

// --- Feeds and watches take their types from it ---

const plainFeed = t.procedure.input(tenant).subscription(
  brokerFeed(broker, orders, {
    params: ({ ctx, input, signal, path }) => {
      same<typeof ctx.user, Context['user']>();
      same<typeof input, { tenant: string }>();
      same<typeof signal, AbortSignal | undefined>();
      same<typeof path, string>();
      return input;
    },
  }),
);
const fullFeed = t.procedure.input(tenant).subscription(
  brokerFeed(broker, orders, {
    params: async ({ input }) => ({ tenant: input.tenant }),
    secret: '0123456789abcdef',
    prepare: (order) => {
      same<typeof order, Order>();
      return { order };
    },
    filter: (value, { ctx, entry }) => {
      same<typeof value, { order: Order }>();
      same<typeof ctx.user, Context['user']>();
      same<typeof entry.generation, number>();
      return true;
    },
    map: ({ order }, entry, { input }) => {
      same<typeof entry.topic, string>();
      same<typeof input, { tenant: string }>();
      return order.note === '' ? undefined : order.note;
    },
    onGap: ({ ctx }) => [ctx.user.id.length],
    control: true,
  }),
);
const definedWatch = t.procedure.input(tenant).subscription(
  watchFeed(broker, orders, {
    params: ({ input }) => input,
    capacity: 16,
    map: (order, event, { ctx }) => {
      same<typeof order, Order>();
      same<typeof event, WatchEvent>();
      same<typeof ctx.user, Context['user']>();
      return order.id === '' ? undefined : order.id;
    },
  }),
);
const wholeWatch = t.procedure
  .input(tenant)
  .subscription(watchFeed(broker, orders, { params: ({ input }) => input }));
const namedWatch = t.procedure
  .input(z.string())
  .subscription(watchFeed(broker, ({ input }) => input, { decode: 'text', only: 'announcements' }));
const schemaWatch = t.procedure.subscription(watchFeed(broker, 'presence', { schema: Order }));
const jsonWatch = t.procedure.subscription(watchFeed(broker, 'presence'));
const decodedWatch = t.procedure.subscription(
  watchFeed(broker, 'presence', { decode: (text) => text.length }),
);

const appRouter = t.router({
  plainFeed,
  fullFeed,
  definedWatch,
  wholeWatch,
  namedWatch,
  schemaWatch,
  jsonWatch,
  decodedWatch,
});
declare const socket: Parameters<typeof wsLink>[0]['client'];
const client = createTRPCClient<typeof appRouter>({ links: [wsLink({ client: socket })] });

interface SentOrder {
  id: string;
  at: string;
  note: string;
}
client.plainFeed.subscribe(
  { tenant: 'acme' },
  {
    onData({ id, data }) {
      same<typeof id, string>();
      same<typeof data, SentOrder>();
    },
  },
);
client.fullFeed.subscribe(
  { tenant: 'acme' },
  { onData: ({ data }) => same<typeof data, string | number | FeedControl>() },
);
client.definedWatch.subscribe(
  { tenant: 'acme' },
  { onData: (data) => same<typeof data, string | FeedLag>() },
);
client.wholeWatch.subscribe(
  { tenant: 'acme' },
  { onData: (data) => same<typeof data, SentOrder | FeedLag>() },
);
client.namedWatch.subscribe('acme', { onData: (data) => same<typeof data, string | FeedLag>() });
client.schemaWatch.subscribe(undefined, {
  onData: (data) => same<typeof data, SentOrder | FeedLag>(),
});
client.jsonWatch.subscribe(undefined, { onData: (data) => same<typeof data, unknown>() });
client.decodedWatch.subscribe(undefined, {
  onData: (data) => same<typeof data, number | FeedLag>(),
});

// --- What the types refuse ---

// @ts-expect-error - which topic a subscription reads must be said
t.procedure.input(tenant).subscription(brokerFeed(broker, orders, {}));
t.procedure.input(tenant).subscription(
  // @ts-expect-error - no such params
  brokerFeed(broker, orders, { params: () => ({ tenants: 'acme' }) }),
);
t.procedure.input(tenant).subscription(
  // @ts-expect-error - the topic brings its schema
  brokerFeed(broker, orders, { params: ({ input }) => input, schema: Order }),
);
t.procedure.input(z.string()).subscription(
  // @ts-expect-error - tRPC cannot put a resume token into a text
  brokerFeed(broker, orders, { params: ({ input }) => ({ tenant: input }) }),
);
t.procedure.input(tenant).subscription(
  // @ts-expect-error - no such property in the value
  watchFeed(broker, orders, { params: ({ input }) => input, map: (order) => order.price }),
);
