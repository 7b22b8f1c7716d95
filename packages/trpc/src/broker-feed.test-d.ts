// Type tests, compiled by `tsc -p tsconfig.test.json`: what infers with no annotation, seen from stock clients.
import type { Broker } from '@brokerfeed/core';
import type { FeedControl, FeedErrorData } from '@brokerfeed/core/wire';
import { createTRPCClient, httpSubscriptionLink, wsLink } from '@trpc/client';
import { initTRPC, type TrackedEnvelope, tracked } from '@trpc/server';
import { EventSource } from 'eventsource';
import { z } from 'zod';
import { brokerFeed, feedInput, withFeedErrors } from './index.ts';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void => {};

declare const broker: Broker;
interface Context {
  readonly user: { readonly id: string; sees(order: Order): boolean };
}
const Order = z.object({ id: z.string(), total: z.number() });
type Order = z.infer<typeof Order>;

const t = initTRPC.context<Context>().create({ errorFormatter: withFeedErrors() });
const tenant = z.object({ tenant: z.string() });

// --- Callbacks infer context, input, value ---

const schemaFeed = t.procedure.input(tenant).subscription(
  brokerFeed(
    broker,
    ({ ctx, input, signal, path }) => {
      same<typeof ctx.user, Context['user']>();
      same<typeof input, { tenant: string }>();
      same<typeof signal, AbortSignal | undefined>();
      same<typeof path, string>();
      return `orders.${input.tenant}`;
    },
    {
      schema: Order,
      secret: ['0123456789abcdef', '0123456789abcdeg'],
      filter: (order, { ctx, input, entry }) => {
        same<typeof order, Order>();
        same<typeof ctx.user, Context['user']>();
        same<typeof input, { tenant: string }>();
        same<typeof entry.generation, number>();
        return ctx.user.sees(order);
      },
      bind: ({ ctx }) => ctx.user.id,
      onGap: ({ ctx, input, gap }) => {
        same<typeof ctx.user, Context['user']>();
        same<typeof input, { tenant: string }>();
        same<typeof gap.lastEventId, string | undefined>();
        return { recent: [input.tenant] };
      },
    },
  ),
);

const mappedFeed = t.procedure
  .use(({ ctx, next }) => next({ ctx: { session: ctx.user.id.length } }))
  .subscription(
    brokerFeed(broker, async ({ ctx }) => `by.${ctx.session.toFixed()}`, {
      decode: 'text',
      prepare: async (text) => {
        same<typeof text, string>();
        return { words: text.split(' ') };
      },
      filter: async (value, { ctx }) => {
        same<typeof value, { words: string[] }>();
        same<typeof ctx.session, number>();
        return value.words.length > 0;
      },
      map: async (value, entry, { ctx, input }) => {
        same<typeof value, { words: string[] }>();
        same<typeof entry.topic, string>();
        same<typeof ctx.session, number>();
        same<typeof input, undefined>();
        return value.words.length > 2 ? value.words.length : undefined;
      },
      onGap: async function* () {
        yield 'again' as const;
      },
      control: { idleMs: 1_000 },
    }),
  );

const plainFeed = t.procedure.subscription(brokerFeed(broker, 'orders'));
const decodedFeed = t.procedure.subscription(
  brokerFeed(broker, 'orders', {
    decode: (text, entry) => {
      same<typeof text, string>();
      same<typeof entry.index, number>();
      return Number(text);
    },
    onGap: () => ['a', 'b'],
    control: true,
  }),
);
const optionalFeed = t.procedure.input(tenant.optional()).subscription(
  brokerFeed(
    broker,
    ({ input }) => {
      same<typeof input, { tenant: string } | undefined>();
      return input?.tenant ?? 'all';
    },
    { schema: Order, onGap: () => 'one value' as string },
  ),
);
const silentFeed = t.procedure.subscription(
  brokerFeed(broker, 'orders', { decode: 'text', onGap: async () => {}, control: false }),
);
const trackedFeed = t.procedure.subscription(
  brokerFeed(broker, 'orders', {
    decode: 'text',
    map: (text) => tracked('own', text.length),
    onGap: () => tracked('own', true),
  }),
);
const strictFeed = t.procedure
  .concat(feedInput())
  .input(z.strictObject({ tenant: z.string() }))
  .subscription(
    brokerFeed(
      broker,
      ({ ctx, input }) => {
        same<typeof ctx.user, Context['user']>();
        same<typeof input, { tenant: string }>();
        return input.tenant;
      },
      { schema: Order },
    ),
  );
const inResolver = t.procedure.input(tenant).subscription((opts) =>
  brokerFeed(broker, opts.input.tenant, {
    schema: Order,
    filter: (order) => opts.ctx.user.sees(order),
  })(opts),
);
const validated = t.procedure
  .output(z.custom<AsyncIterable<TrackedEnvelope<Order>, void, unknown>>())
  .subscription(brokerFeed(broker, 'orders', { schema: Order }));

const appRouter = t.router({
  schemaFeed,
  mappedFeed,
  plainFeed,
  decodedFeed,
  optionalFeed,
  silentFeed,
  trackedFeed,
  strictFeed,
  inResolver,
  validated,
});
type AppRouter = typeof appRouter;

// --- Seen from stock clients ---

declare const socket: Parameters<typeof wsLink>[0]['client'];
const overWs = createTRPCClient<AppRouter>({ links: [wsLink({ client: socket })] });
const overSse = createTRPCClient<AppRouter>({
  links: [httpSubscriptionLink({ url: '', EventSource })],
});

for (const client of [overWs, overSse]) {
  client.schemaFeed.subscribe(
    { tenant: 'acme' },
    {
      onData({ id, data }) {
        same<typeof id, string>();
        same<typeof data, Order | { recent: string[] }>();
      },
      onError(error) {
        same<NonNullable<typeof error.data>['httpStatus'], number>();
        same<NonNullable<typeof error.data>['feed'], FeedErrorData | undefined>();
      },
    },
  );
  client.mappedFeed.subscribe(undefined, {
    onData: ({ data }) => same<typeof data, number | 'again' | FeedControl>(),
  });
  client.plainFeed.subscribe(undefined, { onData: ({ data }) => same<typeof data, unknown>() });
  client.decodedFeed.subscribe(undefined, {
    onData: ({ data }) => same<typeof data, number | string | FeedControl>(),
  });
  client.optionalFeed.subscribe(undefined, {
    onData: ({ data }) => same<typeof data, Order | string>(),
  });
  client.silentFeed.subscribe(undefined, { onData: ({ data }) => same<typeof data, string>() });
  client.trackedFeed.subscribe(undefined, {
    onData: ({ data }) => same<typeof data, number | boolean>(),
  });
  client.strictFeed.subscribe(
    { tenant: 'acme' },
    {
      onData: ({ data }) => same<typeof data, Order>(),
      onError: (error) => same<NonNullable<typeof error.data>['feed'], FeedErrorData | undefined>(),
    },
  );
  client.inResolver.subscribe(
    { tenant: 'acme' },
    { onData: ({ data }) => same<typeof data, Order>() },
  );
  client.validated.subscribe(undefined, { onData: ({ data }) => same<typeof data, Order>() });
}

// --- What the types refuse ---

// @ts-expect-error - tRPC cannot put a resume token into a text
t.procedure.input(z.string()).subscription(brokerFeed(broker, 'orders'));
// @ts-expect-error - nor into an array
t.procedure.input(z.array(z.string())).subscription(brokerFeed(broker, 'orders'));
// @ts-expect-error - a topic is a text
t.procedure.subscription(brokerFeed(broker, () => 5));
// @ts-expect-error - no such property in the context
t.procedure.subscription(brokerFeed(broker, ({ ctx }) => ctx.tenant));
// @ts-expect-error - no input, no properties of it
t.procedure.subscription(brokerFeed(broker, ({ input }) => input.tenant));
t.procedure.subscription(
  // @ts-expect-error - the filter answers yes or no
  brokerFeed(broker, 'orders', { schema: Order, filter: (order) => order.id }),
);
t.procedure.subscription(
  // @ts-expect-error - no such property in the value
  brokerFeed(broker, 'orders', { schema: Order, map: (order) => order.price }),
);
// @ts-expect-error - the JSON of an entry is of an unknown type
t.procedure.subscription(brokerFeed(broker, 'orders', { map: (order) => order.id }));
// @ts-expect-error - no such decoding
t.procedure.subscription(brokerFeed(broker, 'orders', { decode: 'xml' }));
// @ts-expect-error - no such option
t.procedure.subscription(brokerFeed(broker, 'orders', { onGaps: () => 1 }));
// @ts-expect-error - no such start
t.procedure.subscription(brokerFeed(broker, 'orders', { from: 'now' }));

// --- The error formatter keeps what the user adds ---

const shaped = initTRPC.context<Context>().create({
  errorFormatter: withFeedErrors(({ shape, ctx }) => ({
    ...shape,
    data: { ...shape.data, user: ctx?.user.id },
  })),
});
const shapedRouter = shaped.router({
  feed: shaped.procedure.subscription(brokerFeed(broker, 'orders')),
});
declare const shapedSocket: typeof socket;
createTRPCClient<typeof shapedRouter>({ links: [wsLink({ client: shapedSocket })] }).feed.subscribe(
  undefined,
  {
    onError(error) {
      same<NonNullable<typeof error.data>['feed'], FeedErrorData | undefined>();
      same<NonNullable<typeof error.data>['user'], string | undefined>();
    },
  },
);
