import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Broker, Meter } from '@brokerfeed/core';
import { journalBroker } from '@brokerfeed/journal';
import { redisBroker } from '@brokerfeed/redis';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import {
  createTRPCClient,
  createWSClient,
  httpSubscriptionLink,
  type TRPCClient,
  wsLink,
} from '@trpc/client';
import { initTRPC } from '@trpc/server';
import { EventSource } from 'eventsource';
import { Redis } from 'ioredis';
import superjson from 'superjson';
import { describe, expect, inject, test } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { TRANSPORTS, type Transport } from './support/client.ts';
import { collect } from './support/collector.ts';
import { startStreamServer } from './support/event-streams.ts';
import { TestMeter } from './support/observed.ts';
import { SIGNED } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

const PUSHED = 'brokerfeed.feed.pushed';

const at = new Date('2026-02-28T23:59:59.999Z');

/** What JSON alone would change or refuse. */
const VALUES: readonly unknown[] = [
  at,
  2n ** 70n,
  -1n,
  new Map<unknown, unknown>([
    ['a', 1],
    [2n, { at }],
  ]),
  new Set([at, 'x', undefined]),
  undefined,
  { gone: undefined, there: null },
  [undefined, null, Number.NaN, Number.POSITIVE_INFINITY, -0],
  { deep: { map: new Map([[at, new Set([1n])]]), list: [{ at }, { at }] } },
  /a+/gi,
  { json: 1, meta: { values: {} } },
  'plain',
];

const t = initTRPC.create({ transformer: superjson, errorFormatter: withFeedErrors() });

function routerOf(broker: Broker, inputs: unknown[]) {
  const since = z.object({ since: z.date(), lastEventId: z.string().optional() });
  return t.router({
    feed: t.procedure.input(since).subscription(
      brokerFeed(
        broker,
        ({ input }) => {
          inputs.push(input.since);
          return 'orders';
        },
        { ...SIGNED, decode: (text) => superjson.parse(text) },
      ),
    ),
  });
}

/** A broker that keeps what it is given outside this process's heap. */
interface Kept extends AsyncDisposable {
  readonly broker: Broker;
}

const BROKERS: Readonly<Record<string, (meter: Meter) => Promise<Kept>>> = {
  Redis: async (meter) => {
    const client = new Redis(inject('redisUrl'));
    const prefix = `superjson-${crypto.randomUUID()}`;
    const broker = redisBroker({ client, prefix, meter });
    return {
      broker,
      async [Symbol.asyncDispose]() {
        await broker.close();
        const keys = await client.keys(`*${prefix}*`);
        if (keys.length > 0) await client.unlink(keys);
        await client.quit();
      },
    };
  },
  'a journal': async (meter) => {
    const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-superjson-'));
    const broker = journalBroker({ dir, meter });
    return {
      broker,
      async [Symbol.asyncDispose]() {
        await broker.close();
        await rm(dir, { recursive: true, force: true });
      },
    };
  },
};

type Router = ReturnType<typeof routerOf>;

interface Connected extends AsyncDisposable {
  readonly trpc: TRPCClient<Router>;
}

/** A stock client of a server that pushes, or of tRPC's adapters alone. */
async function connect(router: Router, transport: Transport, pushes: boolean): Promise<Connected> {
  if (transport === 'sse') {
    const server = await startStreamServer(router, { feeds: pushes });
    const link = httpSubscriptionLink({ url: server.httpUrl, EventSource, transformer: superjson });
    return {
      trpc: createTRPCClient<Router>({ links: [link] }),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
  }
  const server = await startWsServer(router, { attach: pushes });
  const client = createWSClient({
    url: server.url,
    WebSocket: WebSocket as unknown as typeof globalThis.WebSocket,
  });
  return {
    trpc: createTRPCClient<Router>({ links: [wsLink({ client, transformer: superjson })] }),
    async [Symbol.asyncDispose]() {
      await client.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe.each(Object.entries(BROKERS))('through %s', (_broker, make) => {
  describe.each(TRANSPORTS)('over %s', (transport) => {
    test.each([
      ['pushed', true],
      ['pulled', false],
    ] as const)(
      '%s, values and inputs arrive as they were, live and resumed',
      async (_how, pushes) => {
        const meter = new TestMeter();
        await using kept = await make(meter);
        const inputs: unknown[] = [];
        await using client = await connect(routerOf(kept.broker, inputs), transport, pushes);
        const { log } = kept.broker;
        using live = collect((on) => client.trpc.feed.subscribe({ since: at }, on));
        await meter.attached(1);
        const texts = VALUES.map((value) => superjson.stringify(value));
        for (const text of texts) await log.append('orders', text);
        await log.append('orders', texts);
        const twice = [...VALUES, ...VALUES];
        expect(await live.take(twice.length)).toStrictEqual(twice);
        const lastEventId = live.frames[2]?.id;
        if (lastEventId === undefined) expect.fail('no token came');
        live.unsubscribe();

        using resumed = collect((on) => client.trpc.feed.subscribe({ since: at, lastEventId }, on));
        expect(await resumed.take(twice.length - 3)).toStrictEqual(twice.slice(3));
        expect(inputs).toStrictEqual([at, at]);
        expect([live.errors, resumed.errors]).toEqual([[], []]);
        expect(meter.of(PUSHED)).toBe(pushes ? 2 : 0);
      },
    );
  });
});
