import { type BrokerFeedOptions, brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { type AnyTRPCRouter, initTRPC } from '@trpc/server';
import superjson from 'superjson';
import { describe, expect, test } from 'vitest';
import { EventReader, startStreamServer } from './support/event-streams.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { SIGNED } from './support/router.ts';

const PUSHED = 'brokerfeed.feed.pushed';

/** Values whose events are hard to write: blank lines, what looks like a field, unicode, sizes of several chunks. */
const VALUES: readonly unknown[] = [
  0,
  -0,
  1e21,
  '',
  null,
  false,
  [],
  {},
  '\n\n\ndata: 1\nid: x\n\n',
  'event: ping\r\n: comment\r\r\0',
  'é ü 漢字 😀 \u2028\u2029 \u0000\u001f " \\ / </script>',
  '\ud800 alone \udfff',
  { id: 'x', json: 1, meta: { values: {} } },
  JSON.parse('{"__proto__":{"a":1},"constructor":2}'),
  { deep: Array.from({ length: 50 }).reduce<unknown>((inner) => ({ inner }), 'core') },
  'é'.repeat(40_000),
  '😀'.repeat(20_000),
];

/** Those that superjson takes: it refuses property names that could pollute a prototype. */
const SAFE_VALUES = VALUES.filter((value) => !Object.hasOwn(Object(value), '__proto__'));

const ORIGIN = { 'access-control-allow-origin': 'https://example.com', vary: 'origin' };

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

interface Case {
  readonly options?: Partial<AnyOptions>;
  readonly transformer?: typeof superjson;
  readonly values?: readonly unknown[];
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Events that come before the values: control frames, a snapshot. */
  readonly before?: number;
  /** Values of which clients get nothing. */
  readonly without?: (value: unknown) => boolean;
}

const rich = {
  date: new Date(0),
  big: 2n ** 70n,
  map: new Map<unknown, unknown>([[1, new Set([new Date(1)])]]),
  gone: undefined,
  list: [undefined, null, Number.NaN, Number.POSITIVE_INFINITY, -0],
};

const BAD_ID = `?input=${encodeURIComponent('{"lastEventId":"not a token"}')}`;

const CASES: Record<string, Case> = {
  'values of every kind': {},
  text: { options: { decode: 'text' } },
  prepare: { options: { prepare: (value) => ({ prepared: value }) } },
  'prepare, asynchronous': { options: { prepare: async (value) => ({ prepared: value }) } },
  'prepare, to what JSON does not have': { options: { prepare: () => () => 1 } },
  filter: {
    options: { filter: (value) => typeof value === 'string' },
    without: (value) => typeof value !== 'string',
  },
  map: { options: { map: (value) => ({ toJSON: () => ({ mapped: value }) }) } },
  'map, asynchronous': { options: { map: async (value) => [value] } },
  'bound tokens': { options: { bind: () => 'somebody' } },
  'control frames': { options: { control: true }, before: 1 },
  'a snapshot': {
    options: { onGap: () => ['one', { two: 2 }, 'é'.repeat(70_000)] },
    query: BAD_ID,
    before: 3,
  },
  'a snapshot, of an id in the header': {
    options: { onGap: async ({ gap }) => [gap.lastEventId], control: true },
    headers: { 'last-event-id': 'not a token' },
    before: 1,
  },
  'superjson, plain values': { transformer: superjson, values: SAFE_VALUES },
  'superjson, rich values': {
    transformer: superjson,
    values: SAFE_VALUES,
    options: { map: (value) => ({ ...rich, value }) },
  },
  'superjson, rich values that are shared': {
    transformer: superjson,
    values: SAFE_VALUES,
    options: { prepare: (value) => ({ ...rich, same: rich.date, value }) },
  },
};

interface RootOptions {
  readonly transformer?: typeof superjson | undefined;
  readonly sse?: {
    readonly ping?: { readonly enabled: boolean; readonly intervalMs: number };
    readonly maxDurationMs?: number;
    readonly client?: { readonly reconnectAfterInactivityMs: number };
  };
}

function routerOf(
  broker: ObservedBroker,
  options: object = {},
  { transformer, sse }: RootOptions = {},
): AnyTRPCRouter {
  const t = initTRPC.create({
    errorFormatter: withFeedErrors(),
    // A stack differs by where it was taken.
    isDev: false,
    ...(sse && { sse }),
    ...(transformer && { transformer }),
  });
  const feed = brokerFeed(broker, 'orders', { ...SIGNED, ...options } as AnyOptions);
  return t.router({ feed: t.procedure.subscription(feed as never) }) as unknown as AnyTRPCRouter;
}

interface Pair extends AsyncDisposable {
  /** From a server that pushes. */
  readonly pushed: EventReader;
  /** From one of tRPC alone. */
  readonly pulled: EventReader;
}

async function openPair(router: AnyTRPCRouter, { query = '', headers }: Case = {}): Promise<Pair> {
  const handler = {
    responseMeta: () => ({ headers: new Headers({ ...ORIGIN, 'set-cookie': 'a=b' }) }),
  };
  const servers = [
    await startStreamServer(router, { handler }),
    await startStreamServer(router, { handler, feeds: false }),
  ] as const;
  const pushed = await EventReader.open(`${servers[0].httpUrl}/feed${query}`, headers);
  const pulled = await EventReader.open(`${servers[1].httpUrl}/feed${query}`, headers);
  return {
    pushed,
    pulled,
    async [Symbol.asyncDispose]() {
      for (const part of [pushed, pulled, ...servers]) await part[Symbol.asyncDispose]();
    },
  };
}

function withoutDate({ headers }: EventReader): object {
  return { ...headers, date: undefined };
}

describe('the bytes of a pushed feed are those of tRPC alone', () => {
  test.each(Object.entries(CASES))('%s', async (_name, given) => {
    const { values = VALUES, before = 0, without = () => false } = given;
    await using broker = observedBroker();
    const router = routerOf(broker, given.options, given);
    await using pair = await openPair(router, given);
    const { pushed, pulled } = pair;
    await broker.meter.attached(2);
    for (const reader of [pushed, pulled]) await reader.take(before);
    // Alone, together, and in commits of several.
    const texts = values.map((value) => JSON.stringify(value));
    for (const text of texts) await broker.log.append('orders', text);
    for (const text of texts) void broker.log.append('orders', text);
    await broker.log.append('orders', texts);
    const count = before + 3 * values.filter((value) => !without(value)).length;
    for (const reader of [pushed, pulled]) {
      await reader.until(() => reader.events.length === 1 + count);
    }
    expect(pushed.text === pulled.text).toBe(true);
    expect(pushed.text.length).toBeGreaterThan(2000);
    expect(pushed.status).toBe(pulled.status);
    expect(withoutDate(pushed)).toEqual(withoutDate(pulled));
    expect(pushed.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      'set-cookie': ['a=b'],
      ...{ 'access-control-allow-origin': ORIGIN['access-control-allow-origin'] },
    });
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('after a resume, by header and by url', async () => {
    await using broker = observedBroker();
    const router = routerOf(broker, { from: 'earliest' });
    const texts = VALUES.map((value) => JSON.stringify(value));
    await broker.log.append('orders', texts);
    await broker.log.append('orders', texts);
    await using fresh = await openPair(router);
    await fresh.pushed.take(2 * VALUES.length);
    const id = fresh.pushed.frames[VALUES.length - 1]?.id ?? '';
    const input = encodeURIComponent(JSON.stringify({ lastEventId: id }));
    for (const given of [{ headers: { 'last-event-id': id } }, { query: `?input=${input}` }]) {
      await using pair = await openPair(router, given);
      const { pushed, pulled } = pair;
      for (const reader of [pushed, pulled]) await reader.take(VALUES.length);
      expect(pushed.text === pulled.text).toBe(true);
      expect(pushed.values).toHaveLength(VALUES.length);
      expect(fresh.pushed.text.endsWith(pushed.text.slice(pushed.text.indexOf('data: 0')))).toBe(
        true,
      );
    }
    expect(broker.meter.of(PUSHED)).toBe(3);
  });

  test('when the client is told options, and the stream ends by its longest duration', async () => {
    await using broker = observedBroker();
    const sse = { maxDurationMs: 300, client: { reconnectAfterInactivityMs: 60_000 } };
    await using pair = await openPair(routerOf(broker, {}, { sse }));
    const { pushed, pulled } = pair;
    await broker.meter.attached(2);
    await broker.log.append('orders', ['1', '2']);
    for (const reader of [pushed, pulled]) await reader.over();
    expect(pushed.text).toBe(pulled.text);
    expect(pushed.text).toMatch(
      /^event: connected\ndata: \{"reconnectAfterInactivityMs":60000\}\n\n\ndata: 1\n/,
    );
    expect([pushed.state, pulled.state, pushed.values]).toEqual(['ended', 'ended', [1, 2]]);
    await broker.untilReads(0);
  });

  test('when the feed is refused', async () => {
    await using broker = observedBroker();
    await using pair = await openPair(routerOf(broker), { query: BAD_ID });
    for (const reader of [pair.pushed, pair.pulled]) await reader.over();
    expect(pair.pushed.text).toBe(pair.pulled.text);
    expect(pair.pushed.text).toContain('"reason":"malformed"');
    expect(withoutDate(pair.pushed)).toEqual(withoutDate(pair.pulled));
  });
});

describe('an error in the stream comes after what was pushed before it, as from tRPC alone', () => {
  test('an entry that cannot be decoded', async () => {
    await using broker = observedBroker();
    await using pair = await openPair(routerOf(broker, { onEntryError: 'end' }));
    await broker.meter.attached(2);
    await broker.log.append('orders', ['1', '2', 'no JSON', '3']);
    for (const reader of [pair.pushed, pair.pulled]) await reader.over();
    expect(pair.pushed.text).toBe(pair.pulled.text);
    expect(pair.pushed.values).toEqual([1, 2]);
    expect(pair.pushed.events.at(-1)?.[0]).toBe('event: serialized-error');
    expect(pair.pushed.events.at(-1)?.[1]).toContain('"reason":"entry"');
    expect(broker.meter.of(PUSHED)).toBe(1);
    await broker.untilReads(0);
  });

  test('a broker that closes', async () => {
    await using broker = observedBroker();
    await using pair = await openPair(routerOf(broker));
    await broker.meter.attached(2);
    await broker.log.append('orders', ['1', '2']);
    for (const reader of [pair.pushed, pair.pulled]) await reader.take(2);
    await broker.close();
    for (const reader of [pair.pushed, pair.pulled]) await reader.over();
    expect(pair.pushed.text).toBe(pair.pulled.text);
    expect(pair.pushed.events.at(-1)?.[1]).toContain('"httpStatus":503');
  });
});

test('pings come between events, never inside one', async () => {
  await using broker = observedBroker();
  const sse = { ping: { enabled: true, intervalMs: 1 } };
  await using pair = await openPair(routerOf(broker, {}, { sse }));
  await broker.meter.attached(2);
  const pings = (): number =>
    pair.pushed.events.filter(([event]) => event === 'event: ping').length;
  let n = 0;
  while (n < 200 || pings() < 20) {
    await broker.log.append('orders', [String(n), JSON.stringify(`é${n}`)]);
    n += 2;
    await pair.pushed.take(n);
  }
  await pair.pulled.take(n);
  const frames = (reader: EventReader): string =>
    reader.text.replaceAll('event: ping\ndata: \n\n\n', '');
  expect(frames(pair.pushed) === frames(pair.pulled)).toBe(true);
  expect(pair.pushed.values).toHaveLength(n);
  expect(broker.meter.of(PUSHED)).toBe(1);
});
