import { once } from 'node:events';
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed } from '@brokerfeed/trpc';
import { withFeeds } from '@brokerfeed/trpc/sse';
import { createHTTP2Handler } from '@trpc/server/adapters/standalone';
import { describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { freePort } from '../examples/orders/free-port.ts';
import { startProxy } from '../examples/orders/proxy.ts';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { EventReader } from './support/event-streams.ts';
import { gate } from './support/gate.ts';
import { startInstance, type TestInstance } from './support/instance.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';

/** Two instances on one log, and a balancer that sends nobody to one that is not live. */
interface World extends AsyncDisposable {
  readonly old: TestInstance;
  readonly next: TestInstance;
  readonly oldBroker: ObservedBroker;
  readonly nextBroker: ObservedBroker;
  readonly httpUrl: string;
  readonly wsUrl: string;
  append(count: number): Promise<void>;
}

function routerOn(broker: ObservedBroker, name: string, answer: () => Promise<void>) {
  return t.router({
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })),
    wrapped: t.procedure.subscription(async function* (options) {
      yield* await brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })(options);
    }),
    ask: t.procedure.query(async () => {
      await answer();
      return name;
    }),
    // No feed at all, and deaf to its signal.
    name: t.procedure.subscription(async function* () {
      yield name;
      await new Promise(() => {});
    }),
  });
}

type Router = ReturnType<typeof routerOn>;

async function makeWorld(answer = async () => {}): Promise<World> {
  const store = memoryStore();
  const [oldBroker, nextBroker] = [observedBroker({ store }), observedBroker({ store })];
  const old = await startInstance(routerOn(oldBroker, 'old', answer));
  const next = await startInstance(routerOn(nextBroker, 'next', answer));
  next.live = false;
  const proxy = await startProxy(await freePort(), () => [old, next]);
  let appended = 0;
  return {
    old,
    next,
    oldBroker,
    nextBroker,
    httpUrl: `http://127.0.0.1:${proxy.port}`,
    wsUrl: `ws://127.0.0.1:${proxy.port}`,
    async append(count) {
      for (const end = appended + count; appended < end; appended += 1) {
        await nextBroker.log.append('orders', String(appended));
      }
    },
    async [Symbol.asyncDispose]() {
      await proxy.close();
      for (const each of [old, next, oldBroker, nextBroker]) await each[Symbol.asyncDispose]();
    },
  };
}

/** From now on the balancer knows. */
function replace({ old, next }: World): void {
  next.live = true;
  old.live = false;
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

describe.each(TRANSPORTS)('over %s', (transport) => {
  test.each(['feed', 'wrapped'] as const)(
    'a client of %s moves, misses nothing and gets nothing twice',
    async (path) => {
      await using world = await makeWorld();
      await using client = connect<Router>(world, transport);
      using feed = collect((on) => client.trpc[path].subscribe(undefined, on));
      await world.append(5);
      await feed.take(5);
      replace(world);
      const report = world.old.drain({ overMs: 50 });
      await world.append(5);
      expect((await report)[transport]).toEqual({ moved: 1, closed: 0 });
      await world.append(5);
      await feed.until(({ values }) => values.at(-1) === 14);
      expect(feed.values).toEqual(upTo(15));
      expect([feed.errors, feed.completed]).toEqual([[], false]);
      expect(world.next.arrivals).toBe(1);
      // Nothing of it is left where it was.
      await world.oldBroker.untilReads(0);
    },
  );
});

describe('over ws', () => {
  test('a client sees nothing of its move', async () => {
    await using world = await makeWorld();
    await using client = connect<Router>(world, 'ws');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await world.append(1);
    await feed.take(1);
    const before = [...feed.states];
    replace(world);
    await world.old.drain({ overMs: 0 });
    await world.append(1);
    expect(await feed.take(2)).toEqual([0, 1]);
    expect([feed.states, feed.started]).toEqual([before, 1]);
  });

  test('a call under way is answered where it was made, by then new ones go elsewhere', async () => {
    const held = gate();
    held.close();
    await using world = await makeWorld(() => held.pass());
    await using client = connect<Router>(world, 'ws');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await world.append(1);
    await feed.take(1);
    const asked = client.trpc.ask.query();
    await held.reached;
    replace(world);
    const report = world.old.drain({ overMs: 0, graceMs: 60_000 });
    await world.nextBroker.untilReads(1);
    await world.oldBroker.untilReads(0);
    held.open();
    expect(await asked).toBe('old');
    expect(await client.trpc.ask.query()).toBe('next');
    expect((await report).ws).toEqual({ moved: 1, closed: 0 });
  });

  test('a subscription that is no feed is moved too', async () => {
    await using world = await makeWorld();
    await using client = connect<Router>(world, 'ws');
    const names: string[] = [];
    using feed = collect((on) =>
      client.trpc.name.subscribe(undefined, {
        onData: (name) => {
          names.push(name);
          on.onData({ id: '' });
        },
      }),
    );
    await feed.take(1);
    replace(world);
    expect((await world.old.drain({ overMs: 0 })).ws).toEqual({ moved: 1, closed: 0 });
    await feed.take(2);
    expect(names).toEqual(['old', 'next']);
  });

  test('a client that does not move is closed after the grace, with the code of a restart', async () => {
    await using world = await makeWorld();
    await using client = await RawClient.open(world.old.wsUrl);
    client.subscribe(1, 'feed');
    await world.append(3);
    await client.take(1, 3);
    const closed = once(client.ws, 'close');
    expect((await world.old.drain({ overMs: 0, graceMs: 20 })).ws).toEqual({ moved: 0, closed: 1 });
    expect((await closed)[0]).toBe(1012);
    expect(client.messages.at(-1)).toEqual({ id: null, method: 'reconnect' });
  });

  test('a client that comes back to an instance which leaves is served there, and moved again', async () => {
    await using world = await makeWorld();
    await using client = connect<Router>(world, 'ws');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await world.append(1);
    await feed.take(1);
    // They have the later slots, so that the client has the first, and time to come back.
    const others: RawClient[] = [];
    for (let n = 0; n < 5; n += 1) others.push(await RawClient.open(world.old.wsUrl));
    const report = world.old.drain({ overMs: 3_000 });
    while (world.old.arrivals < 7) await new Promise(setImmediate);
    await world.append(1);
    await feed.take(2);
    // Only now the balancer knows.
    replace(world);
    await world.nextBroker.untilReads(1);
    await world.append(1);
    expect(await feed.take(3)).toEqual([0, 1, 2]);
    for (const other of others) await other[Symbol.asyncDispose]();
    expect((await report).ws).toEqual({ moved: 7, closed: 0 });
    expect(feed.errors).toEqual([]);
  });

  test('nobody is let in once the drain is over, and who is not tries again', async () => {
    await using world = await makeWorld();
    await world.old.drain({ overMs: 0 });
    const refused = new WebSocket(world.old.wsUrl);
    const [, response] = await once(refused, 'unexpected-response');
    expect(response.statusCode).toBe(400);
    refused.on('error', () => {});
    refused.terminate();

    await using client = connect<Router>(world, 'ws');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await feed.until(({ states }) => states.filter((state) => state === 'connecting').length > 2);
    replace(world);
    await world.append(1);
    expect(await feed.take(1)).toEqual([0]);
  });

  test('a client that reads no text of ours is closed in place of being told', async () => {
    const text = new TextEncoder();
    const encoder = {
      encode: (data: unknown) => text.encode(JSON.stringify(data)),
      decode: (data: string | ArrayBuffer | Uint8Array) =>
        JSON.parse(typeof data === 'string' ? data : new TextDecoder().decode(data)),
    };
    const broker = observedBroker();
    await using instance = await startInstance(
      routerOn(broker, 'old', async () => {}),
      {
        handler: { experimental_encoder: encoder },
      },
    );
    await using client = await RawClient.open(instance.wsUrl);
    client.subscribe(1, 'feed');
    await client.started(1);
    expect((await instance.drain({ overMs: 0 })).ws).toEqual({ moved: 1, closed: 0 });
    await client.closed();
    expect(client.messages.map(({ id }) => id)).not.toContain(null);
  });
});

describe('over sse', () => {
  test('a response ends without saying that the subscription has, and so does its connection', async () => {
    await using world = await makeWorld();
    await using reader = await EventReader.open(`${world.old.httpUrl}/feed`);
    await world.append(2);
    await reader.take(2);
    await world.old.drain({ overMs: 0 });
    await reader.over();
    expect(reader.state).toBe('ended');
    expect(reader.text).not.toContain('event: return');
    expect(reader.values).toEqual([0, 1]);
  });

  test('a subscription that is no feed is ended too, though it is deaf', async () => {
    await using world = await makeWorld();
    await using reader = await EventReader.open(`${world.old.httpUrl}/name`);
    await reader.take(1);
    expect((await world.old.drain({ overMs: 0 })).sse).toEqual({ moved: 1, closed: 0 });
    await reader.over();
    expect([reader.state, reader.values]).toEqual(['ended', ['old']]);
  });

  test('a response that has not begun is ended as an event stream, from which a client comes back', async () => {
    const held = gate();
    held.close();
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(
          broker,
          async () => {
            await held.pass();
            return 'orders';
          },
          SIGNED,
        ),
      ),
      witness: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using instance = await startInstance(router);
    const opening = EventReader.open(`${instance.httpUrl}/feed`);
    await held.reached;
    await using witness = await EventReader.open(`${instance.httpUrl}/witness`);
    const report = instance.drain({ overMs: 0 });
    // It came later, and is told to move later.
    await witness.over();
    held.open();
    await using reader = await opening;
    await reader.over();
    expect(reader.headers['content-type']).toBe('text/event-stream');
    expect([reader.status, reader.state]).toEqual([200, 'ended']);
    expect((await report).sse).toEqual({ moved: 2, closed: 0 });
    await broker.untilReads(0);
  });

  test('a client that does not read is cut off after the grace', async () => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest', decode: 'text' }),
      ),
    });
    for (let n = 0; n < 16; n += 1) await broker.log.append('orders', 'x'.repeat(1_000_000));
    await using instance = await startInstance(router);
    await using reader = await EventReader.open(`${instance.httpUrl}/feed`);
    reader.pause();
    await broker.meter.until('brokerfeed.feed.paused', 1);
    expect((await instance.drain({ overMs: 0, graceMs: 20 })).sse).toEqual({ moved: 0, closed: 1 });
    reader.resume();
    await reader.over();
    expect(reader.state).toBe('cut');
  });

  test('who comes after the drain is sent away as an event stream', async () => {
    await using world = await makeWorld();
    await world.old.drain({ overMs: 0 });
    await using reader = await EventReader.open(`${world.old.httpUrl}/feed`);
    await reader.over();
    expect([reader.status, reader.state]).toEqual([200, 'ended']);
  });

  test('over HTTP/2 the stream ends, and its connection takes no more', async () => {
    await using broker = observedBroker();
    const http = withFeeds({ router: routerOn(broker, 'old', async () => {}) });
    const server = createHttp2Server(createHTTP2Handler(http));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const goodbye = once(session, 'goaway');
    const stream = session.request({ ':path': '/feed' });
    stream.setEncoding('utf8');
    await broker.log.append('orders', '1');
    let text = '';
    for await (const chunk of stream) {
      text += chunk;
      if (!text.includes('id: ')) continue;
      expect((await http.drain({ overMs: 0 })).moved).toBe(1);
    }
    expect(text).not.toContain('event: return');
    await goodbye;
    await broker.untilReads(0);
    server.close();
  });
});
