/** Feeds whose frames are compared byte for byte, pushed with those of tRPC alone: what both transports have of it. */
import { type BrokerFeedOptions, brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { type AnyTRPCRouter, initTRPC } from '@trpc/server';
import superjson from 'superjson';
import type { ObservedBroker } from './observed.ts';
import { SIGNED } from './router.ts';

type AnyOptions = BrokerFeedOptions<
  object,
  undefined,
  'json' | 'text',
  undefined,
  unknown,
  unknown,
  unknown,
  boolean
>;

export interface FrameCase {
  readonly options?: Omit<Partial<AnyOptions>, 'secret'> & { readonly secret?: undefined };
  readonly transformer?: typeof superjson;
  /** @default those of the test */
  readonly values?: readonly unknown[];
  /** Frames that come before the values: control frames, a snapshot. */
  readonly before?: number;
  /** Values of which clients get nothing. */
  readonly without?: (value: unknown) => boolean;
}

/** Values that are hard to write: numbers, unicode, nesting, what looks like a frame, sizes of several chunks. */
export const HARD_VALUES: readonly unknown[] = [
  0,
  -0,
  1e21,
  1.5e-7,
  '',
  null,
  false,
  [],
  {},
  'é ü 漢字 😀 \u2028\u2029 \u0000\u001f " \\ / </script>',
  '\ud800 alone \udfff',
  { lastEventId: 'x', id: 'y', result: { type: 'stopped' }, json: 1, meta: { values: {} } },
  ['__proto__', { __proto__: null }, [[[[[[]]]]]]],
  { deep: Array.from({ length: 50 }).reduce<unknown>((inner) => ({ inner }), 'core') },
  'é'.repeat(40_000),
  '😀'.repeat(20_000),
];

const RICH = {
  date: new Date(0),
  big: 2n ** 70n,
  map: new Map<unknown, unknown>([[1, new Set([new Date(1)])]]),
  gone: undefined,
  list: [undefined, null, Number.NaN, Number.POSITIVE_INFINITY, -0],
  url: new URL('https://example.com/?q=é'),
  pattern: /a"b/gi,
};

/** A snapshot of three values. */
export const SNAPSHOT: FrameCase = {
  options: { onGap: () => ['one', { two: 2 }, 'é'.repeat(70_000)] },
  before: 3,
};

export const FRAME_CASES: Readonly<Record<string, FrameCase>> = {
  'values of every kind': {},
  'names that superjson refuses': {
    values: ['{"__proto__":{"a":1},"constructor":2}', '{"toString":1}'].map((text) =>
      JSON.parse(text),
    ),
  },
  text: { options: { decode: 'text' } },
  prepare: { options: { prepare: (value) => ({ prepared: value }) } },
  'prepare, asynchronous': { options: { prepare: async (value) => ({ prepared: value }) } },
  filter: {
    options: { filter: (value) => typeof value === 'string' },
    without: (value) => typeof value !== 'string',
  },
  map: { options: { map: (value) => ({ toJSON: () => ({ mapped: value }) }) } },
  'map, asynchronous': { options: { map: async (value) => [value] } },
  'bound tokens': { options: { bind: () => 'somebody' } },
  'no signature': { options: { secret: undefined } },
  'control frames': { options: { control: true }, before: 2 },
  'superjson, plain values': { transformer: superjson },
  'superjson, rich values': {
    transformer: superjson,
    options: { map: (value) => ({ ...RICH, value }) },
  },
  'superjson, rich values that are shared': {
    transformer: superjson,
    options: { prepare: (value) => ({ ...RICH, same: RICH.date, value }) },
  },
  'superjson, control frames': {
    transformer: superjson,
    options: { control: true },
    before: 2,
  },
};

/** Answers how a router is to be that has such a feed, and errors whose text does not differ by where they were made. */
export function frameRouter(
  broker: ObservedBroker,
  { options, transformer }: FrameCase = {},
  root: RootOptions = {},
): AnyTRPCRouter {
  const t = initTRPC.create({
    errorFormatter: withFeedErrors(),
    isDev: false,
    ...root,
    ...(transformer && { transformer }),
  });
  const { secret, ...signed } = { ...SIGNED, ...options };
  const feed = brokerFeed(broker, 'orders', {
    ...signed,
    ...(secret && { secret }),
  } as AnyOptions);
  return t.router({ feed: t.procedure.subscription(feed as never) }) as unknown as AnyTRPCRouter;
}

export interface RootOptions {
  readonly sse?: {
    readonly ping?: { readonly enabled: boolean; readonly intervalMs: number };
    readonly maxDurationMs?: number;
    readonly client?: { readonly reconnectAfterInactivityMs: number };
  };
}
