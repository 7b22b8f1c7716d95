import { type BrokerFeedOptions, brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { type AnyTRPCRouter, initTRPC } from '@trpc/server';
import superjson from 'superjson';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { RawClient, type SubscribeOptions } from './support/raw-client.ts';
import { SIGNED } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

const PUSHED = 'brokerfeed.feed.pushed';

/** Entries whose frames are hard to write: text, numbers, nesting, and each of the three ways to write a length. */
const VALUES: readonly unknown[] = [
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
  'x'.repeat(70),
  'x'.repeat(200),
  'é'.repeat(40_000),
  'y'.repeat(70_000),
  '😀'.repeat(50_000),
  ...Array.from({ length: 30 }, (_, n) => 'z'.repeat(n)),
];

/** Lengths of a whole frame's text on both sides of where the length is written otherwise. */
const EDGES = [125, 126, 65_535, 65_536];

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
  readonly options?: Omit<AnyOptions, 'secret'> & { readonly secret?: undefined };
  readonly values?: readonly unknown[];
  readonly call?: SubscribeOptions;
  readonly id?: number | string;
  readonly transformer?: typeof superjson;
  /** Frames that come before the values: control frames, a snapshot. */
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
  url: new URL('https://example.com/?q=é'),
  pattern: /a"b/gi,
};

const CASES: Record<string, Case> = {
  'values of every kind': {},
  'names that superjson refuses': {
    values: ['{"__proto__":{"a":1},"constructor":2}', '{"toString":1}'].map((text) =>
      JSON.parse(text),
    ),
  },
  'a text id': { id: 'feed 1' },
  'a text id with quotes, backslashes and unicode': { id: '"\\ é😀\u2028' },
  'a large number as id': { id: 2 ** 53 - 1 },
  jsonrpc: { call: { jsonrpc: '2.0' } },
  'jsonrpc and a text id': { id: 'x', call: { jsonrpc: '2.0' } },
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
  'control frames': { options: { control: true }, before: 1 },
  'a snapshot': {
    options: { onGap: () => ['one', { two: 2 }, 'é'.repeat(70_000)] },
    call: { lastEventId: 'not a token' },
    before: 3,
  },
  'superjson, plain values': { transformer: superjson },
  'superjson, rich values': {
    transformer: superjson,
    options: { map: (value) => ({ ...rich, value }) },
  },
  'superjson, rich values that are shared': {
    transformer: superjson,
    options: { prepare: (value) => ({ ...rich, same: rich.date, value }) },
  },
  'superjson, control frames': {
    transformer: superjson,
    options: { control: true },
    before: 1,
  },
};

function routerOf(broker: ObservedBroker, { options, transformer }: Case): AnyTRPCRouter {
  const t = initTRPC.create({
    errorFormatter: withFeedErrors(),
    ...(transformer && { transformer }),
  });
  const { secret, ...signed } = { ...SIGNED, ...options };
  const feed = brokerFeed(broker, 'orders', {
    ...signed,
    ...(secret && { secret }),
  } as AnyOptions);
  return t.router({ feed: t.procedure.subscription(feed as never) }) as unknown as AnyTRPCRouter;
}

/** All bytes that a client gets, from `started` to `stopped`. */
async function bytesOf(client: RawClient, id: number | string): Promise<string> {
  client.stop(id);
  await client.stopped(id);
  return Buffer.concat(client.bytes).toString('latin1');
}

describe('the bytes of a pushed feed are those of tRPC alone', () => {
  test.each(Object.entries(CASES))('%s', async (_name, given) => {
    const { id = 1, call = {}, values = VALUES, before = 0, without = () => false } = given;
    const input = given.transformer && { input: given.transformer.serialize(undefined) };
    await using broker = observedBroker();
    await using attached = await startWsServer(routerOf(broker, given));
    await using plain = await startWsServer(routerOf(broker, given), { attach: false });
    await using pushed = await RawClient.open(attached.url, { keepBytes: true });
    await using pulled = await RawClient.open(plain.url, { keepBytes: true });
    for (const client of [pushed, pulled]) client.subscribe(id, 'feed', { ...input, ...call });
    for (const client of [pushed, pulled]) await client.count(1 + before);
    if (before === 0) await broker.log.append('orders', '"first"');
    await broker.meter.until(PUSHED, 1);
    // Alone, together, and in commits of several.
    const texts = values.map((value) => JSON.stringify(value));
    for (const text of texts) await broker.log.append('orders', text);
    for (const text of texts) void broker.log.append('orders', text);
    await broker.log.append('orders', texts);
    const first = before === 0 && !without('first') ? 1 : 0;
    const count = 1 + before + first + 3 * values.filter((value) => !without(value)).length;
    for (const client of [pushed, pulled]) await client.count(count);
    const bytes = await bytesOf(pushed, id);
    expect(bytes === (await bytesOf(pulled, id))).toBe(true);
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('a value that cannot be written is left out and counted, and the others come', async () => {
    await using broker = observedBroker();
    const given: Case = { options: { map: (value) => (value === 3 ? { big: 3n } : value) } };
    await using server = await startWsServer(routerOf(broker, given));
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    for (const n of [1, 2, 3, 4]) await broker.log.append('orders', String(n));
    expect(await client.take(1, 3)).toEqual([1, 2, 4]);
    expect(broker.meter.of('brokerfeed.feed.refused encode')).toBe(1);
  });

  test('around every edge of how a length is written', async () => {
    await using broker = observedBroker();
    await using attached = await startWsServer(routerOf(broker, {}));
    await using plain = await startWsServer(routerOf(broker, {}), { attach: false });
    await using pushed = await RawClient.open(attached.url, { keepBytes: true });
    await using pulled = await RawClient.open(plain.url, { keepBytes: true });
    for (const client of [pushed, pulled]) {
      client.subscribe(1, 'feed');
      await client.started(1);
    }
    await broker.log.append('orders', '""');
    await pushed.take(1, 1);
    const overhead = (pushed.texts.at(-1) as string).length;
    for (const edge of EDGES) {
      for (const off of [-2, -1, 0, 1, 2]) {
        // No frame with a token is as short as the first edge: its lengths are those of the payload alone.
        const length = edge + off - (edge > overhead ? overhead : 0);
        await broker.log.append('orders', JSON.stringify('x'.repeat(length)));
      }
    }
    const count = 2 + EDGES.length * 5;
    for (const client of [pushed, pulled]) await client.count(count);
    const lengths = pushed.texts.map((text) => text.length);
    for (const edge of EDGES.filter((length) => length > overhead)) {
      expect(lengths).toContain(edge);
      expect(lengths).toContain(edge + 1);
    }
    expect((await bytesOf(pushed, 1)) === (await bytesOf(pulled, 1))).toBe(true);
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('with a schema, and many feeds on one socket', async () => {
    const t = initTRPC.create();
    await using broker = observedBroker();
    const schema = z.object({ n: z.number(), at: z.coerce.date() });
    const router = t.router({
      feed: t.procedure.input(z.object({ least: z.number() })).subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          schema,
          filter: ({ n }, { input }) => n >= input.least,
        }),
      ),
    });
    await using attached = await startWsServer(router);
    await using plain = await startWsServer(router, { attach: false });
    await using pushed = await RawClient.open(attached.url);
    await using pulled = await RawClient.open(plain.url);
    const ids = [0, 1, 10, 'a', 'b', 99, ...Array.from({ length: 20 }, (_, n) => `more ${n}`)];
    for (const client of [pushed, pulled]) {
      for (const [least, id] of ids.entries()) client.subscribe(id, 'feed', { input: { least } });
    }
    await broker.meter.attached(2 * ids.length);
    for (let n = 0; n < 60; n += 1) {
      await broker.log.append('orders', JSON.stringify({ n, at: n, extra: 'stripped' }));
    }
    for (const [least, id] of ids.entries()) {
      await pushed.take(id, 60 - least);
      await pulled.take(id, 60 - least);
      const own = (client: RawClient): string[] =>
        client.texts.filter((text) => text.startsWith(`{"id":${JSON.stringify(id)},`));
      expect(own(pushed)).toEqual(own(pulled));
    }
    expect(broker.meter.of(PUSHED)).toBe(ids.length);
  });
});
