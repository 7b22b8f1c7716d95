import { brokerFeed } from '@brokerfeed/trpc';
import { initTRPC } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  FRAME_CASES,
  type FrameCase,
  frameRouter,
  HARD_VALUES,
  SNAPSHOT,
} from './support/frame-cases.ts';
import { observedBroker } from './support/observed.ts';
import { RawClient, type SubscribeOptions } from './support/raw-client.ts';
import { SIGNED } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

const PUSHED = 'brokerfeed.feed.pushed';

/** Among them are those of which a frame's length is written in each of the three ways. */
const VALUES: readonly unknown[] = [
  ...HARD_VALUES,
  'x'.repeat(70),
  'x'.repeat(200),
  'y'.repeat(70_000),
  '😀'.repeat(50_000),
  ...Array.from({ length: 30 }, (_, n) => 'z'.repeat(n)),
];

/** Lengths of a whole frame's text on both sides of where the length is written otherwise. */
const EDGES = [125, 126, 65_535, 65_536];

interface Case extends FrameCase {
  readonly call?: SubscribeOptions;
  readonly id?: number | string;
}

const CASES: Record<string, Case> = {
  ...FRAME_CASES,
  'a text id': { id: 'feed 1' },
  'a text id with quotes, backslashes and unicode': { id: '"\\ é😀\u2028' },
  'a large number as id': { id: 2 ** 53 - 1 },
  jsonrpc: { call: { jsonrpc: '2.0' } },
  'jsonrpc and a text id': { id: 'x', call: { jsonrpc: '2.0' } },
  'a snapshot': { ...SNAPSHOT, call: { lastEventId: 'not a token' } },
};

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
    await using attached = await startWsServer(frameRouter(broker, given));
    await using plain = await startWsServer(frameRouter(broker, given), { attach: false });
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
    await using server = await startWsServer(frameRouter(broker, given));
    await using client = await RawClient.open(server.url);
    client.subscribe(1, 'feed');
    await client.started(1);
    for (const n of [1, 2, 3, 4]) await broker.log.append('orders', String(n));
    expect(await client.take(1, 3)).toEqual([1, 2, 4]);
    expect(broker.meter.of('brokerfeed.feed.refused encode')).toBe(1);
  });

  test('around every edge of how a length is written', async () => {
    await using broker = observedBroker();
    await using attached = await startWsServer(frameRouter(broker));
    await using plain = await startWsServer(frameRouter(broker), { attach: false });
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
