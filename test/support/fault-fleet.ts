import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { FaultRecord, type FaultSnapshot, type FaultSubscriber } from '@brokerfeed/conformance';
import type { Broker } from '@brokerfeed/core';
import { brokerFeed } from '@brokerfeed/trpc';
import { withFeeds } from '@brokerfeed/trpc/sse';
import { attachFeeds } from '@brokerfeed/trpc/ws';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { applyWSSHandler } from '@trpc/server/adapters/ws';
import type { Unsubscribable } from '@trpc/server/observable';
import { WebSocketServer } from 'ws';
import { z } from 'zod';
import { freePort } from '../../examples/orders/free-port.ts';
import { startProxy } from '../../examples/orders/proxy.ts';
import { connect, type TestClient, type Transport } from './client.ts';
import type { FeedClientError, Frame } from './collector.ts';
import { SECRET, t } from './router.ts';

export type FaultRouter = ReturnType<typeof faultRouter>;

/** Makes a router with the feed of a fault run, for subscribers that are told by snapshots and for those that are refused. */
export function faultRouter(broker: Broker, topic: string) {
  // Every subscriber sees where it stands, and the ring is soon outrun.
  const options = { secret: SECRET, from: 'earliest', control: true, highWaterMark: 8 } as const;
  const procedure = t.procedure.input(z.object({ lastEventId: z.string().nullish() }));
  return t.router({
    snapshot: procedure.subscription(
      brokerFeed(broker, topic, {
        ...options,
        onGap: ({ gap }): FaultSnapshot => ({ gap: gap.reason }),
      }),
    ),
    refusal: procedure.subscription(brokerFeed(broker, topic, options)),
  });
}

/** An instance of a service: feeds over SSE and WebSockets on one port, pushed on both. */
export interface FleetServer extends AsyncDisposable {
  readonly port: number;
  readonly live: boolean;
}

/** Starts an instance in this process, on a free port unless one is named. */
export async function startFleetServer(
  broker: Broker,
  topic: string,
  port = 0,
): Promise<FleetServer> {
  const router = faultRouter(broker, topic);
  const server = createServer(createHTTPHandler(withFeeds({ router })));
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  const wss = new WebSocketServer({ server });
  applyWSSHandler({ wss, router });
  attachFeeds(wss);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    live: true,
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

/** Subscribers with stock tRPC clients, behind the demo's proxy, over instances that it spreads them on. */
export interface Fleet extends AsyncDisposable {
  readonly subscribers: readonly FaultSubscriber[];
}

/** Puts the proxy before instances, and makes subscribers: half over WebSockets and half over SSE. They are not connected yet. */
export async function startFleet(
  targets: () => readonly { readonly port: number; readonly live: boolean }[],
  count: number,
): Promise<Fleet> {
  const port = await freePort();
  const proxy = await startProxy(port, targets);
  const at = { httpUrl: `http://127.0.0.1:${port}`, wsUrl: `ws://127.0.0.1:${port}` };
  const subscribers = Array.from(
    { length: count },
    (_, nth) => new StockSubscriber(nth, () => connect<FaultRouter>(at, transportOf(nth))),
  );
  return {
    subscribers,
    [Symbol.asyncDispose]: () => proxy.close(),
  };
}

function transportOf(nth: number): Transport {
  return nth % 2 === 0 ? 'ws' : 'sse';
}

/** A stock tRPC client that starts afresh when it is refused. */
class StockSubscriber implements FaultSubscriber {
  readonly record: FaultRecord;
  readonly #feed: 'snapshot' | 'refusal';
  readonly #open: () => TestClient<FaultRouter>;
  #client: TestClient<FaultRouter> | undefined;
  #subscription: Unsubscribable | undefined;

  constructor(nth: number, open: () => TestClient<FaultRouter>) {
    this.#feed = (nth >> 1) % 2 === 0 ? 'snapshot' : 'refusal';
    this.record = new FaultRecord(`${transportOf(nth)} subscriber ${nth} (${this.#feed})`);
    this.#open = open;
  }

  connect(): void {
    this.#client = this.#open();
    this.#subscribe(this.#client);
  }

  leave(): void {
    const client = this.#client;
    this.#client = undefined;
    this.#subscription?.unsubscribe();
    void client?.[Symbol.asyncDispose]();
  }

  async close(): Promise<void> {
    this.leave();
  }

  #subscribe(client: TestClient<FaultRouter>): void {
    const { record } = this;
    const subscribe = client.trpc[this.#feed].subscribe;
    // Over SSE a stock client completes what has just ended with an error, or by itself.
    let phase: 'open' | 'over' = 'open';
    this.#subscription = subscribe({ lastEventId: record.token }, {
      onStarted: () => record.connected(),
      onData: ({ id, data }: Frame) => record.frame(id, data),
      onComplete: () => {
        if (phase === 'open' && this.#client === client) record.failed('the feed was completed');
      },
      onError: (error: FeedClientError) => {
        phase = 'over';
        if (this.#client !== client) return;
        if (!record.ended(error.data?.feed?.reason ?? error.message)) return;
        this.#subscribe(client);
      },
      // What SSE retries by itself is no error of the subscription, but the application is shown it.
      onConnectionStateChange: ({ error }: { error: FeedClientError | null }) => {
        if (error?.data?.code !== undefined) record.failed(error.message);
      },
    } as never);
  }
}
