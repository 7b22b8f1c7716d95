import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { constants, createGunzip } from 'node:zlib';
import { memoryStore } from '@brokerfeed/core/memory';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { initTRPC } from '@trpc/server';
import { describe, expect, test, vi } from 'vitest';
import { type Balancer, type BalancerKind, startBalancer, whyNot } from './support/balancer.ts';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { codeBlocks, readText } from './support/documents.ts';
import { EventReader } from './support/event-streams.ts';
import { startInstance, type TestInstance } from './support/instance.ts';
import { type ObservedBroker, observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED } from './support/router.ts';

vi.setConfig({ testTimeout: 60_000 });

const KINDS = ['nginx', 'haproxy'] as const;
const MISSING = Object.fromEntries(
  await Promise.all(KINDS.map(async (kind) => [kind, await whyNot(kind)] as const)),
);
for (const reason of Object.values(MISSING)) {
  if (reason !== undefined) console.log(`load balancer: not run, ${reason}`);
}

/** How long a balancer lets a connection be quiet, in place of a minute: where it is to cut it, and where it is not. */
const CUT_MS = 500;
const IDLE_MS = 2_000;
const PING_MS = 200;

const OPERATIONS = readText('docs/operations.md');

/** The configuration that the documents recommend, with these ports and shorter times. */
function configOf(
  kind: BalancerKind,
  port: number,
  instances: readonly TestInstance[],
  idleMs: number,
): string {
  let text = codeBlocks(OPERATIONS, kind)[0] ?? '';
  const swap = (from: string | RegExp, to: string): void => {
    expect(text).toMatch(from);
    text = text.replaceAll(from, to);
  };
  swap(
    kind === 'nginx' ? 'listen 80' : 'bind :80',
    `${kind === 'nginx' ? 'listen' : 'bind'} 127.0.0.1:${port}`,
  );
  for (const [index, instance] of instances.entries()) {
    swap(`10.0.0.${index + 1}:3000`, `127.0.0.1:${instance.port}`);
  }
  swap(/\b60s/g, `${idleMs}ms`);
  if (kind === 'haproxy') swap('inter 1s', 'inter 100ms');
  return text;
}

interface World extends AsyncDisposable {
  readonly balancer: Balancer;
  readonly instances: readonly [TestInstance, TestInstance];
  readonly brokers: readonly ObservedBroker[];
  append(count: number): Promise<void>;
}

interface WorldOptions {
  readonly pings?: boolean;
  readonly idleMs?: number;
  /** Changes the recommended configuration. */
  readonly change?: (config: string) => string;
}

function routerOn(broker: ObservedBroker, pings: boolean) {
  const t = initTRPC.create({
    errorFormatter: withFeedErrors(),
    sse: { ping: { enabled: pings, intervalMs: PING_MS } },
  });
  return t.router({
    feed: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })),
  });
}

type Router = ReturnType<typeof routerOn>;

/** Two instances on one log, behind a balancer. */
async function makeWorld(kind: BalancerKind, options: WorldOptions = {}): Promise<World> {
  const { pings = false, idleMs = 60_000, change = (config) => config } = options;
  const store = memoryStore();
  const brokers = [observedBroker({ store }), observedBroker({ store })];
  const start = (broker: ObservedBroker): Promise<TestInstance> =>
    startInstance(routerOn(broker, pings), {
      handler: { keepAlive: { enabled: pings, pingMs: PING_MS } },
    });
  const instances = [
    await start(brokers[0] as ObservedBroker),
    await start(brokers[1] as ObservedBroker),
  ] as const;
  const balancer = await startBalancer(kind, (port) =>
    change(configOf(kind, port, instances, idleMs)),
  );
  let appended = 0;
  return {
    balancer,
    instances,
    brokers,
    async append(count) {
      for (const end = appended + count; appended < end; appended += 1) {
        await brokers[0]?.log.append('orders', String(appended));
      }
    },
    async [Symbol.asyncDispose]() {
      await balancer[Symbol.asyncDispose]();
      for (const each of [...instances, ...brokers]) await each[Symbol.asyncDispose]();
    },
  };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

// At the same time: each has instances and a balancer of its own, and mostly waits for times to pass.
describe.concurrent.each(KINDS)('behind %s', (kind) => {
  describe.skipIf(MISSING[kind] !== undefined)('with the recommended configuration', () => {
    test('an event passes when it comes, and so does the beginning of a quiet stream', async () => {
      await using world = await makeWorld(kind);
      await using reader = await EventReader.open(`${world.balancer.httpUrl}/feed`);
      await reader.includes('event: connected');
      for (let n = 1; n <= 3; n += 1) {
        await world.append(1);
        expect(await reader.take(n)).toEqual(upTo(n));
      }
    });

    test('a quiet connection is cut, and its client goes on', async () => {
      await using world = await makeWorld(kind, { idleMs: CUT_MS });
      const clients = TRANSPORTS.map((transport) => connect<Router>(world.balancer, transport));
      const feeds = clients.map((client) =>
        collect((on) => client.trpc.feed.subscribe(undefined, on)),
      );
      await world.append(3);
      for (const feed of feeds) {
        await feed.take(3);
        const seen = feed.states.length;
        await feed.until(({ states }) => states.indexOf('connecting', seen) > 0);
      }
      await world.append(3);
      for (const [index, feed] of feeds.entries()) {
        expect(await feed.take(6)).toEqual(upTo(6));
        expect(feed.errors).toEqual([]);
        feed.unsubscribe();
        await clients[index]?.[Symbol.asyncDispose]();
      }
    });

    test('pings keep a quiet connection', async () => {
      await using world = await makeWorld(kind, { idleMs: IDLE_MS, pings: true });
      await using stream = await EventReader.open(`${world.balancer.httpUrl}/feed`);
      await using socket = await RawClient.open(world.balancer.wsUrl);
      socket.ws.on('message', (data) => {
        if (String(data) === 'PING') socket.ws.send('PONG');
      });
      socket.subscribe(1, 'feed');
      // As many as come in more than the time after which it would be cut.
      const enough = (1.3 * IDLE_MS) / PING_MS;
      await stream.until(
        () => stream.events.filter(([name]) => name === 'event: ping').length > enough,
      );
      await socket.until(() => socket.texts.filter((text) => text === 'PING').length > enough);
      await world.append(1);
      expect(await stream.take(1)).toEqual([0]);
      expect(await socket.take(1, 1)).toEqual([0]);
    });

    test('clients that are cut again and again, and come to whichever instance, miss nothing and get nothing twice', async () => {
      await using world = await makeWorld(kind);
      const clients = Array.from({ length: 10 }, (_, n) =>
        connect<Router>(world.balancer, TRANSPORTS[n % 2] as 'ws' | 'sse'),
      );
      const feeds = clients.map((client) =>
        collect((on) => client.trpc.feed.subscribe(undefined, on)),
      );
      for (let round = 1; round <= 6; round += 1) {
        await world.append(10);
        for (const feed of feeds) await feed.take(round * 10 - 5);
        world.instances[round % 2]?.cut();
      }
      for (const feed of feeds) {
        expect(await feed.take(60)).toEqual(upTo(60));
        expect([feed.errors, feed.completed]).toEqual([[], false]);
        feed.unsubscribe();
      }
      for (const { arrivals } of world.instances)
        expect(arrivals).toBeGreaterThan(clients.length / 2);
      for (const client of clients) await client[Symbol.asyncDispose]();
    });

    test.each(TRANSPORTS)(
      'a client over %s outlives that no instance is there',
      async (transport) => {
        await using world = await makeWorld(kind);
        await using client = connect<Router>(world.balancer, transport);
        using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
        await world.append(1);
        await feed.take(1);
        const ports = world.instances.map(({ port }) => port);
        for (const instance of world.instances) await instance[Symbol.asyncDispose]();
        // It was told more than once that nobody is there.
        await feed.until(
          ({ states }) => states.filter((state) => state === 'connecting').length > 3,
        );
        expect(feed.errors).toEqual([]);
        await using _again = await startInstance(
          routerOn(world.brokers[1] as ObservedBroker, false),
          {
            port: ports[1] as number,
          },
        );
        await world.append(1);
        expect(await feed.take(2)).toEqual([0, 1]);
      },
    );

    test.each(TRANSPORTS)(
      'clients over %s move to the other instance when one is drained',
      async (transport) => {
        await using world = await makeWorld(kind);
        const clients = Array.from({ length: 4 }, () => connect<Router>(world.balancer, transport));
        const feeds = clients.map((client) =>
          collect((on) => client.trpc.feed.subscribe(undefined, on)),
        );
        await world.append(5);
        for (const feed of feeds) await feed.take(5);
        const [old, next] = world.instances;
        old.ready = false;
        const drained = old.drain({ overMs: 200, graceMs: 200 });
        await world.append(5);
        await drained;
        await old[Symbol.asyncDispose]();
        await world.append(5);
        for (const feed of feeds) {
          expect(await feed.take(15)).toEqual(upTo(15));
          expect([feed.errors, feed.completed]).toEqual([[], false]);
          feed.unsubscribe();
        }
        expect(next.arrivals).toBeGreaterThanOrEqual(clients.length);
        for (const client of clients) await client[Symbol.asyncDispose]();
      },
    );
  });
});

describe.skipIf(MISSING.nginx !== undefined)('nginx that compresses event streams', () => {
  const GZIP = 'gzip on; gzip_types text/event-stream; gzip_proxied any;';
  const gzipWorld = (more = ''): Promise<World> =>
    makeWorld('nginx', {
      change: (config) =>
        config.replace('proxy_http_version', `${GZIP} ${more} proxy_http_version`),
    });
  const open = async ({ balancer }: World): Promise<IncomingMessage> => {
    const headers = { 'accept-encoding': 'gzip' };
    const request = get(`${balancer.httpUrl}/feed`, { headers, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    expect(response.headers['content-encoding']).toBe('gzip');
    return response;
  };

  test('passes each event on when it comes, since the response says so', async () => {
    await using world = await gzipWorld();
    const response = await open(world);
    const events = response.pipe(createGunzip({ flush: constants.Z_SYNC_FLUSH }));
    await world.append(1);
    let text = '';
    for await (const chunk of events) {
      text += chunk;
      if (text.includes('data: 2\n')) break;
      if (/id: .*\n\n\n$/.test(text)) await world.append(1);
    }
    response.destroy();
  });

  test('and ignores what the response says holds everything back until the stream ends', async () => {
    await using world = await gzipWorld('proxy_ignore_headers X-Accel-Buffering;');
    let phase: 'before' | 'after' = 'before';
    const opened = open(world).then((response) => ({ response, phase }));
    const direct = await Promise.all(
      world.instances.map(({ httpUrl }) => EventReader.open(`${httpUrl}/feed`)),
    );
    // Clients without nginx between get one after the other meanwhile.
    for (let n = 1; n <= 20; n += 1) {
      await world.append(1);
      for (const reader of direct) await reader.take(n);
    }
    phase = 'after';
    for (const instance of world.instances) await instance.drain({ overMs: 0 });
    const { response, ...answered } = await opened;
    expect(answered.phase).toBe('after');
    response.destroy();
    for (const reader of direct) await reader[Symbol.asyncDispose]();
  });
});

test('an event stream says that it must not be buffered or changed', async () => {
  await using broker = observedBroker();
  await using instance = await startInstance(routerOn(broker, false));
  await using reader = await EventReader.open(`${instance.httpUrl}/feed`);
  expect(reader.headers).toMatchObject({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  });
});
