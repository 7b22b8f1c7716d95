import { brokerFeed } from '@brokerfeed/trpc';
import { type TrackedEnvelope, tracked } from '@trpc/server';
import { applyWSSHandler, type Encoder } from '@trpc/server/adapters/ws';
import { describe, expect, test } from 'vitest';
import type { WebSocket, WebSocketServer } from 'ws';
import { z } from 'zod';
import { gate } from './support/gate.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

const PUSHED = 'brokerfeed.feed.pushed';

type Frames = AsyncIterable<TrackedEnvelope<unknown>, void, unknown>;

function feedOf(broker: ObservedBroker) {
  return brokerFeed(broker, 'orders', SIGNED);
}

/** A value that only the wrapper under test makes. */
function wrapped(frame: TrackedEnvelope<unknown>): TrackedEnvelope<unknown> {
  return tracked(frame[0], { wrapped: frame[1] });
}

/** What may stand between a feed and the client, each changing every value. */
const WRAPPERS = {
  'a generator with for await': async function* (feed: Frames) {
    for await (const frame of feed) yield wrapped(frame);
  },
  'an iterator of its own, taken in the turn of tRPC': (feed: Frames) => ({
    [Symbol.asyncIterator]() {
      const inner = feed[Symbol.asyncIterator]();
      return {
        async next() {
          const next = await inner.next();
          return next.done ? next : { done: false as const, value: wrapped(next.value) };
        },
        async return() {
          await inner.return?.();
          return { done: true as const, value: undefined };
        },
      };
    },
  }),
  'a feed whose next() was replaced': (feed: Frames) => {
    const iterator = feed as Frames & AsyncIterator<TrackedEnvelope<unknown>, void, unknown>;
    const next = iterator.next.bind(iterator);
    // It looks at nothing of the first value, so that only the replacement itself can give it away.
    let calls = 0;
    iterator.next = async () => {
      const result = await next();
      calls += 1;
      if (result.done || calls === 1) return result;
      return { done: false as const, value: wrapped(result.value) };
    };
    return iterator;
  },
  'a proxy of the iterator': (feed: Frames) => ({
    [Symbol.asyncIterator]() {
      const inner = feed[Symbol.asyncIterator]();
      const next = async () => {
        const result = await inner.next();
        return result.done ? result : { done: false as const, value: wrapped(result.value) };
      };
      return new Proxy(inner, {
        get(target, key) {
          if (key === 'next') return next;
          const member: unknown = Reflect.get(target, key);
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
    },
  }),
  'a proxy that lets the first value pass as it is': (feed: Frames) => ({
    [Symbol.asyncIterator]() {
      const inner = feed[Symbol.asyncIterator]();
      const next = async () => {
        const result = await inner.next();
        if (result.done) return result;
        const [, data] = result.value;
        return data === 0 ? result : { done: false as const, value: wrapped(result.value) };
      };
      return new Proxy(inner, {
        get(target, key) {
          if (key === 'next') return next;
          const member: unknown = Reflect.get(target, key);
          return typeof member === 'function' ? member.bind(target) : member;
        },
      });
    },
  }),
} satisfies Record<string, (feed: Frames) => AsyncIterable<TrackedEnvelope<unknown>>>;

describe('what changes a value between the feed and the client is never bypassed', () => {
  test.each(Object.entries(WRAPPERS))('%s', async (name, wrap) => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(async (opts) => wrap(await feedOf(broker)(opts))),
    });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await broker.meter.attached(1);
    for (let n = 0; n < 5; n += 1) await broker.log.append('orders', String(n));
    await client.until(() => client.values(1).some((value) => JSON.stringify(value).includes('4')));
    const values = client.values(1).slice(-5);
    const passes = name.includes('first value') || name.includes('replaced');
    expect(values).toEqual([0, 1, 2, 3, 4].map((n) => (passes && n === 0 ? n : { wrapped: n })));
    expect(broker.meter.of(PUSHED)).toBe(0);
    client.stop(1);
    await client.stopped(1);
    await broker.untilReads(0);
  });

  test('a generator that says something before yield*', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(async function* (opts) {
        const feed = await feedOf(broker)(opts);
        yield tracked('hello', 'hello');
        yield* feed;
      }),
    });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.take(1, 1);
    for (let n = 0; n < 3; n += 1) await broker.log.append('orders', String(n));
    expect(await client.take(1, 4)).toEqual(['hello', 0, 1, 2]);
    expect(broker.meter.of(PUSHED)).toBe(0);
  });

  test('a validator of each value', async () => {
    await using broker = observedBroker();
    const output = z
      .custom<Frames>((value) => typeof value === 'object')
      .transform(async function* (frames) {
        for await (const [id, data] of frames) yield tracked(id, z.number().max(3).parse(data));
      });
    const router = t.router({
      feed: t.procedure.output(output).subscription((opts) => feedOf(broker)(opts)),
    });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    for (let n = 0; n < 5; n += 1) await broker.log.append('orders', String(n));
    await client.stopped(1);
    expect(client.values(1)).toEqual([0, 1, 2, 3]);
    expect(client.of(1).at(-2)?.error?.message).toContain('<=3');
    expect(broker.meter.of(PUSHED)).toBe(0);
  });

  test('.errors(), which formats what the feed throws', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure
        .errors(({ shape }) => ({ ...shape, message: 'formatted' }))
        .subscription(feedOf(broker)),
    });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    await broker.log.append('orders', '1');
    await broker.log.append('orders', '2');
    await client.take(1, 2);
    await broker.close();
    await client.until(() => client.of(1).some(({ error }) => error?.message === 'formatted'));
    expect(broker.meter.of(PUSHED)).toBe(0);
  });

  test('a middleware that puts another iterable in the place of the feed', async () => {
    await using broker = observedBroker();
    const procedure = t.procedure.use(async (opts) => {
      const result = await opts.next();
      if (!result.ok) return result;
      const feed = result.data as Frames;
      const data = (async function* () {
        for await (const frame of feed) yield wrapped(frame);
      })();
      return { ...result, data };
    });
    const router = t.router({ feed: procedure.subscription(feedOf(broker)) });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    await broker.log.append('orders', '1');
    await broker.log.append('orders', '2');
    expect(await client.take(1, 2)).toEqual([{ wrapped: 1 }, { wrapped: 2 }]);
    expect(broker.meter.of(PUSHED)).toBe(0);
  });

  test('a middleware that changes nothing does not keep a feed from being pushed', async () => {
    await using broker = observedBroker();
    const procedure = t.procedure.use(({ next }) => next({ ctx: { user: 'anna' } }));
    const router = t.router({ feed: procedure.subscription(feedOf(broker)) });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    for (const n of [1, 2, 3]) await broker.log.append('orders', String(n));
    expect(await client.take(1, 3)).toEqual([1, 2, 3]);
    expect(broker.meter.of(PUSHED)).toBe(1);
  });
});

const jsonText = (data: unknown): string => JSON.stringify(data);
const jsonValue = (data: string | ArrayBuffer | Uint8Array): unknown => JSON.parse(String(data));

/** Encoders that are not tRPC's own: the last one says `started` as that does. */
const ENCODERS: Record<string, Encoder> = {
  'to bytes': { encode: (data) => Buffer.from(jsonText(data)), decode: jsonValue },
  'to another text': { encode: (data) => ` ${jsonText(data)}`, decode: jsonValue },
  'to JSON, with a replacer': {
    encode: (data) => JSON.stringify(data, (_key, value) => (value === 0 ? 'none' : value)),
    decode: jsonValue,
  },
};

describe('an experimental_encoder writes every frame', () => {
  test.each(Object.entries(ENCODERS))('%s', async (_name, encoder) => {
    await using broker = observedBroker();
    const router = t.router({ feed: t.procedure.subscription(feedOf(broker)) });
    const encoded: unknown[] = [];
    const experimental_encoder: Encoder = {
      ...encoder,
      encode(data) {
        encoded.push(data);
        return encoder.encode(data);
      },
    };
    await using server = await startWsServer(router, { handler: { experimental_encoder } });
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    for (const n of [0, 1, 0]) await broker.log.append('orders', String(n));
    const values = await client.take(1, 3);
    expect(values).toEqual(_name.includes('replacer') ? ['none', 1, 'none'] : [0, 1, 0]);
    expect(encoded).toHaveLength(4);
    expect(broker.meter.of(PUSHED)).toBe(0);
  });
});

describe('what stands between tRPC and the socket sees every frame', () => {
  test('a send that was replaced after attachFeeds and changes what it sends', async () => {
    await using broker = observedBroker();
    const router = t.router({ feed: t.procedure.subscription(feedOf(broker)) });
    await using server = await startWsServer(router);
    await using client = await RawClient.open(server.url);
    const ws = await server.socket(0);
    const { send } = ws;
    ws.send = (data: unknown) =>
      Reflect.apply(send, ws, [String(data).replace('"started"', '"started" ')]);
    client.subscribe(1, 'feed');
    await client.started(1);
    ws.send = (data: unknown) => Reflect.apply(send, ws, [`${String(data)} `]);
    for (const n of [0, 1]) await broker.log.append('orders', String(n));
    await client.take(1, 2);
    expect(client.texts.slice(1).every((text) => text.endsWith(' '))).toBe(true);
    expect(broker.meter.of(PUSHED)).toBe(0);
  });

  test('a send that was replaced before attachFeeds: frames are pushed through it', async () => {
    await using broker = observedBroker();
    const router = t.router({ feed: t.procedure.subscription(feedOf(broker)) });
    const seen: string[] = [];
    const apply = (wss: WebSocketServer): void => {
      wss.on('connection', (ws: WebSocket) => {
        const { send } = ws;
        ws.send = (...args: unknown[]) => {
          seen.push(String(args[0]));
          Reflect.apply(send, ws, args);
        };
      });
      applyWSSHandler({ wss, router });
    };
    await using server = await startWsServer(router, { apply });
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    for (const n of [0, 1, 2]) await broker.log.append('orders', String(n));
    await client.take(1, 3);
    expect(seen).toEqual(client.texts);
    expect(broker.meter.of(PUSHED)).toBe(1);
  });

  test('per-message deflate: frames are pushed through it, in order', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(feedOf(broker)),
      echo: t.procedure.query(() => 'x'.repeat(5000)),
    });
    const perMessageDeflate = { threshold: 1000, serverNoContextTakeover: true };
    await using server = await startWsServer(router, { server: { perMessageDeflate } });
    await using client = await RawClient.open(server.url, {
      perMessageDeflate: true,
      keepBytes: true,
    });
    expect(client.ws.extensions).toContain('permessage-deflate');
    client.subscribe(1, 'feed');
    await client.started(1);
    // Small ones are not compressed and could overtake a large one that is.
    const entry = (n: number): string => (n % 3 === 1 ? `${n} `.repeat(20_000) : `${n}`);
    for (let n = 0; n < 100; n += 1) {
      await broker.log.append('orders', JSON.stringify(entry(n)));
      if (n % 20 === 0) client.send({ id: `q${n}`, method: 'query', params: { path: 'echo' } });
    }
    expect(await client.take(1, 100)).toEqual(Array.from({ length: 100 }, (_, n) => entry(n)));
    // The large ones are compressed.
    expect(Buffer.concat(client.bytes).length).toBeLessThan(client.texts.join('').length / 10);
    expect(broker.meter.of(PUSHED)).toBe(1);
  });
});

describe('a feed on a server that is not attached, beside one that is', () => {
  test('is never taken for a subscription that starts in its turn on the other', async () => {
    await using broker = observedBroker();
    const doors = gate();
    doors.close();
    // Both are let go by one promise and take the same way from there: the decoy has just started, and its connection has
    // not found out yet that it is no feed, when the feed's iterator is taken.
    const resolver = (isFeed: boolean) =>
      t.procedure.subscription(async (opts): Promise<Frames> => {
        const feed = await feedOf(broker)(opts);
        await doors.pass();
        if (isFeed) return feed;
        opts.signal?.addEventListener('abort', () => {});
        return (async function* (): AsyncGenerator<TrackedEnvelope<unknown>, void> {
          await new Promise((resolve) => opts.signal?.addEventListener('abort', resolve));
        })();
      });
    const router = t.router({ decoy: resolver(false), feed: resolver(true) });
    await using attached = await startWsServer(router);
    await using plain = await startWsServer(router, { attach: false });
    await using stranger = await RawClient.open(attached.url);
    await using client = await RawClient.open(plain.url);
    stranger.subscribe(1, 'decoy');
    await broker.meter.attached(1);
    client.subscribe(1, 'feed');
    await broker.meter.attached(2);
    await new Promise(setImmediate);
    doors.open();
    await client.started(1);
    await stranger.started(1);
    for (let n = 0; n < 5; n += 1) await broker.log.append('orders', String(n));
    expect(await client.take(1, 5)).toEqual([0, 1, 2, 3, 4]);
    expect(stranger.values(1)).toEqual([]);
    expect(broker.meter.of(PUSHED)).toBe(0);
  });
});
