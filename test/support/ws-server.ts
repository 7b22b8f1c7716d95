import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type AttachFeedsOptions, attachFeeds } from '@brokerfeed/trpc/ws';
import type { AnyTRPCRouter } from '@trpc/server';
import { applyWSSHandler, type WSSHandlerOptions } from '@trpc/server/adapters/ws';
import { type ServerOptions, type WebSocket, WebSocketServer } from 'ws';
import { Moments } from './moments.ts';

export interface WsServerOptions {
  /** `attachFeeds` or not, and with which options. @default true */
  readonly attach?: boolean | AttachFeedsOptions;
  /** Whether that is done before or after tRPC's handler is applied. @default 'after' */
  readonly order?: 'before' | 'after';
  readonly server?: ServerOptions;
  readonly handler?: Partial<Omit<WSSHandlerOptions<AnyTRPCRouter>, 'wss' | 'router'>>;
  /** In place of `applyWSSHandler`. */
  readonly apply?: (wss: WebSocketServer) => void;
}

/** A WebSocket server on tRPC's own handler, with feeds attached to it. */
export interface WsServer extends AsyncDisposable {
  readonly url: string;
  /** The server's ends of its connections, in the order in which they came. */
  readonly sockets: readonly WebSocket[];
  /** Answers the server's end of the nth connection, once it is there. */
  socket(index: number): Promise<WebSocket>;
  broadcastReconnect(): void;
}

/** Starts a server on a free port. */
export async function startWsServer(
  router: AnyTRPCRouter,
  options: WsServerOptions = {},
): Promise<WsServer> {
  const { attach = true, order = 'after' } = options;
  const wss = new WebSocketServer({ port: 0, host: '127.0.0.1', ...options.server });
  const sockets: WebSocket[] = [];
  const moments = new Moments();
  wss.on('connection', (ws: WebSocket, _request: IncomingMessage) => {
    sockets.push(ws);
    moments.tell();
  });
  const attachNow = (): void => {
    if (attach !== false) attachFeeds(wss, attach === true ? {} : attach);
  };
  if (order === 'before') attachNow();
  const { apply } = options;
  const handler =
    apply === undefined ? applyWSSHandler({ wss, router, ...options.handler }) : apply(wss);
  if (order === 'after') attachNow();
  await once(wss, 'listening');
  return {
    url: `ws://127.0.0.1:${(wss.address() as AddressInfo).port}`,
    sockets,
    async socket(index) {
      await moments.until(
        () => sockets.length > index,
        () => `${sockets.length} connections came, not ${index + 1}`,
      );
      return sockets[index] as WebSocket;
    },
    broadcastReconnect: () => handler?.broadcastReconnectNotification(),
    async [Symbol.asyncDispose]() {
      for (const ws of sockets) ws.terminate();
      const closed = once(wss, 'close');
      wss.close();
      await closed;
    },
  };
}
