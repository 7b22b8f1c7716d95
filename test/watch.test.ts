import { announce, defineTopic } from '@brokerfeed/core';
import { memoryBroker, memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed, watchFeed } from '@brokerfeed/trpc';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { gate } from './support/gate.ts';
import { Moments } from './support/moments.ts';
import { TestMeter } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';
import { startWsServer } from './support/ws-server.ts';

const MIB = 1024 * 1024;

/** The first frame of each watch: what came before it is missing. */
const LAG = { feed: 'lagged' };

describe.each(TRANSPORTS)('over %s', (transport) => {
  test('a watch brings what is appended and announced on any instance, from its first frame on', async () => {
    const store = memoryStore();
    await using broker = memoryBroker({ store });
    await using peer = memoryBroker({ store });
    const router = t.router({
      watch: t.procedure.input(z.string()).subscription(watchFeed(broker, ({ input }) => input)),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    await broker.log.append('presence', '0');
    const seen = new Seen();
    const subscription = client.trpc.watch.subscribe('presence', seen);
    await seen.until(() => seen.values.length === 1);
    announce(peer, 'presence', '{"at":1}');
    await seen.until(() => seen.values.length === 2);
    await peer.log.append('presence', ['2', '3']);
    await seen.until(() => seen.values.length === 4);
    expect(seen.values).toEqual([LAG, { at: 1 }, 2, 3]);

    subscription.unsubscribe();
    await expect.poll(() => heard(broker, 'presence')).toBe(false);
    expect(seen.errors).toEqual([]);
  });

  test('a client that comes back has missed what came meanwhile, and is told so', async () => {
    await using broker = memoryBroker();
    const door = gate();
    const topic = async (): Promise<string> => {
      await door.pass();
      return 'presence';
    };
    const router = t.router({ watch: t.procedure.subscription(watchFeed(broker, topic)) });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    const seen = new Seen();
    const subscription = client.trpc.watch.subscribe(undefined, seen);
    await seen.until(() => seen.values.length === 1);
    announce(broker, 'presence', '1');
    await seen.until(() => seen.values.length === 2);
    door.close();
    server.dropSockets();
    await expect.poll(() => heard(broker, 'presence')).toBe(false);
    await broker.log.append('presence', '2');
    door.open();
    await seen.until(() => seen.values.length === 3);
    announce(broker, 'presence', '3');
    await seen.until(() => seen.values.length === 4);
    expect(seen.values).toEqual([LAG, 1, LAG, 3]);
    subscription.unsubscribe();
  });

  test('a feed of a defined topic brings its values, and goes on after a cut', async () => {
    const orders = defineTopic({
      name: ({ tenant }: { tenant: string }) => `orders.${tenant}`,
      schema: z.object({ id: z.number(), note: z.string().default('none') }),
    });
    const meter = new TestMeter();
    await using broker = memoryBroker({ meter });
    const router = t.router({
      feed: t.procedure.input(z.object({ tenant: z.string() })).subscription(
        brokerFeed(broker, orders, {
          ...SIGNED,
          params: ({ input }) => input,
          filter: (order) => order.id !== 2,
        }),
      ),
    });
    await using server = await startServer(router);
    await using client = connect<typeof router>(server, transport);
    using feed = collect((on) => client.trpc.feed.subscribe({ tenant: 'acme' }, on));
    await meter.attached(1);
    await orders.appendAll(broker, { tenant: 'acme' }, [
      { id: 1 },
      { id: 2 },
      { id: 3, note: 'x' },
    ]);
    await feed.take(2);
    server.dropSockets();
    await orders.append(broker, { tenant: 'acme' }, { id: 4 });
    expect(await feed.take(3)).toEqual([
      { id: 1, note: 'none' },
      { id: 3, note: 'x' },
      { id: 4, note: 'none' },
    ]);
  });
});

test('a socket that nobody reads costs the server no more than its buffer and the ring, and is then told what it missed', async () => {
  await using broker = memoryBroker();
  const router = t.router({
    watch: t.procedure.subscription(watchFeed(broker, 'noise', { capacity: 10 })),
  });
  await using server = await startWsServer(router);
  await using client = await RawClient.open(server.url);
  client.subscribe(1, 'watch');
  await client.until(() => client.of(1).length === 2);
  client.ws.pause();
  const ws = await server.socket(0);
  const fill = 'x'.repeat(10_000);
  const count = 2_000;
  let buffered = 0;
  for (let n = 0; n < count; n += 1) {
    announce(broker, 'noise', () => JSON.stringify({ n, fill }));
    await new Promise(setImmediate);
    buffered = Math.max(buffered, ws.bufferedAmount);
  }
  expect(buffered).toBeLessThan(2 * MIB);
  client.ws.resume();
  const dataOf = (): { n?: number; feed?: string; missed?: number }[] =>
    client.of(1).flatMap(({ result }) => (result?.type === 'data' ? [result.data as object] : []));
  await client.until(() => dataOf().at(-1)?.n === count - 1);
  // Every number comes, or is in the count that stands in its place.
  let next = 0;
  let lags = 0;
  for (const { n, missed } of dataOf().slice(1)) {
    if (missed === undefined) {
      expect(n).toBe(next);
      next += 1;
    } else {
      lags += 1;
      next += missed;
    }
  }
  expect(next).toBe(count);
  expect(lags).toBeGreaterThan(0);
});

/** What a subscription told its client, which gets values bare. */
class Seen {
  readonly values: unknown[] = [];
  readonly errors: unknown[] = [];
  readonly #moments = new Moments();

  readonly onData = (value: unknown): void => {
    this.values.push(value);
    this.#moments.tell();
  };
  readonly onError = (error: unknown): void => {
    this.errors.push(error);
    this.#moments.tell();
  };

  until(condition: () => boolean): Promise<void> {
    return this.#moments.until(condition, () => {
      const { values, errors } = this;
      return `not seen; seen: ${JSON.stringify({ values, errors: errors.map(String) })}`;
    });
  }
}

/** Tells whether somebody would hear an announcement: only then it is made. */
function heard(broker: Parameters<typeof announce>[0], topic: string): boolean {
  let made = false;
  announce(broker, topic, () => {
    made = true;
    return '"made by a look"';
  });
  return made;
}
