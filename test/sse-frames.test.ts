import type { AnyTRPCRouter } from '@trpc/server';
import { describe, expect, test } from 'vitest';
import { EventReader, startStreamServer } from './support/event-streams.ts';
import {
  FRAME_CASES,
  type FrameCase,
  frameRouter,
  HARD_VALUES,
  SNAPSHOT,
} from './support/frame-cases.ts';
import { observedBroker } from './support/observed.ts';

const PUSHED = 'brokerfeed.feed.pushed';

/** What would be an end of an event, or a field of one, if it were not written as JSON. */
const VALUES: readonly unknown[] = [
  ...HARD_VALUES,
  '\n\n\ndata: 1\nid: x\n\n',
  'event: ping\r\n: comment\r\r\0',
];

const ORIGIN = { 'access-control-allow-origin': 'https://example.com', vary: 'origin' };

interface Case extends FrameCase {
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const BAD_ID = `?input=${encodeURIComponent('{"lastEventId":"not a token"}')}`;

const CASES: Record<string, Case> = {
  ...FRAME_CASES,
  'prepare, to what JSON does not have': { options: { prepare: () => () => 1 } },
  'a snapshot': { ...SNAPSHOT, query: BAD_ID },
  'a snapshot, of an id in the header': {
    options: { onGap: async ({ gap }) => [gap.lastEventId], control: true },
    headers: { 'last-event-id': 'not a token' },
    before: 3,
  },
};

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
    const router = frameRouter(broker, given);
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
    const router = frameRouter(broker, { options: { from: 'earliest' } });
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
    await using pair = await openPair(frameRouter(broker, {}, { sse }));
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
    await using pair = await openPair(frameRouter(broker), { query: BAD_ID });
    for (const reader of [pair.pushed, pair.pulled]) await reader.over();
    expect(pair.pushed.text).toBe(pair.pulled.text);
    expect(pair.pushed.text).toContain('"reason":"malformed"');
    expect(withoutDate(pair.pushed)).toEqual(withoutDate(pair.pulled));
  });
});

describe('an error in the stream comes after what was pushed before it, as from tRPC alone', () => {
  test('an entry that cannot be decoded', async () => {
    await using broker = observedBroker();
    await using pair = await openPair(frameRouter(broker, { options: { onEntryError: 'end' } }));
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
    await using pair = await openPair(frameRouter(broker));
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
  await using pair = await openPair(frameRouter(broker, {}, { sse }));
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
