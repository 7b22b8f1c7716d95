import {
  createTRPCClient,
  createWSClient,
  httpSubscriptionLink,
  type TRPCClient,
  wsLink,
} from '@trpc/client';
import { EventSource } from 'eventsource';
import { WebSocket } from 'ws';
import type { OrdersRouter } from './router.ts';

export type Transport = 'ws' | 'sse';

/** A client that follows the feed with stock tRPC links, and keeps what it got. */
export class SmokeClient {
  readonly transport: Transport;
  /** The ids of the orders, as they came. */
  readonly received: string[] = [];
  /** For every snapshot, the ids of its orders. */
  readonly snapshots: string[][] = [];
  /** Times that the feed said: from here on you miss nothing. */
  attached = 0;
  error: string | undefined;
  readonly #changed: () => void;
  readonly #close: () => void;

  /** `changed` is called after whatever came. */
  constructor(transport: Transport, port: number, changed: () => void) {
    this.transport = transport;
    this.#changed = changed;
    const { trpc, close } = transport === 'ws' ? overWebSocket(port) : overEvents(port);
    const subscription = trpc.orders.feed.subscribe(undefined, {
      onData: ({ data }) => {
        if ('feed' in data) this.attached += data.feed === 'attached' ? 1 : 0;
        else if ('snapshot' in data) this.snapshots.push(data.snapshot.map(({ id }) => id));
        else this.received.push(data.id);
        this.#changed();
      },
      // Neither transport calls it for a connection that was lost: those are made again, and resume.
      onError: (error) => {
        this.error = error.message;
        this.#changed();
      },
    });
    this.#close = () => {
      subscription.unsubscribe();
      close();
    };
  }

  close(): void {
    this.#close();
  }
}

interface Connected {
  readonly trpc: TRPCClient<OrdersRouter>;
  readonly close: () => void;
}

function overWebSocket(port: number): Connected {
  const socket = createWSClient({
    url: `ws://127.0.0.1:${port}/trpc`,
    // Node 20 has no WebSocket of its own. That of ws is typed apart from the browser's.
    WebSocket: WebSocket as unknown as typeof globalThis.WebSocket,
  });
  const links = [wsLink<OrdersRouter>({ client: socket })];
  return { trpc: createTRPCClient({ links }), close: () => void socket.close() };
}

function overEvents(port: number): Connected {
  const link = httpSubscriptionLink<OrdersRouter, typeof EventSource>({
    url: `http://127.0.0.1:${port}/trpc`,
    EventSource,
  });
  return { trpc: createTRPCClient({ links: [link] }), close: () => {} };
}
