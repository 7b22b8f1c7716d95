import type { IncomingMessage } from 'node:http';
import {
  type EncodedRun,
  type FeedReader,
  type FrameEncoder,
  integerOption,
  type PushTarget,
  refuseOption,
} from '@brokerfeed/core';
import type { WebSocket, WebSocketServer } from 'ws';
import { makeOffer, type PushOffer, type Serializer } from '../push-offer.ts';
import { FeedConnection, type FeedConnectionOptions } from './feed-connection.ts';
import { wsEncoder } from './ws-encoder.ts';

/** Options of {@link attachFeeds}. */
export interface AttachFeedsOptions {
  /**
   * A subscription pauses while its socket holds more than this, in bytes, and catches up once it has drained.
   * @default 1048576 (1 MiB)
   */
  readonly maxBufferedBytes?: number;
  /**
   * What happens to a client that reads too slowly: its subscriptions wait for it, or it is disconnected and resumes.
   * @default 'wait'
   */
  readonly slowReader?: 'wait' | 'disconnect';
}

/** `started` as tRPC's JSON encoder writes it: the first group is what every later frame of the subscription starts with. */
const STARTED =
  /^(\{"id":(?:\d+|"(?:[^"\\]|\\.)*"),(?:"jsonrpc":"2\.0",)?)"result":\{"type":"started"\}\}$/;

/**
 * Makes the feeds of a WebSocket server cheap and safe for slow readers: one line beside tRPC's own `applyWSSHandler`, in
 * any order. Frames are encoded once for all subscribers that get the same, written together, and held back from a
 * socket that does not drain.
 *
 * It changes nothing that a client can see, and uses no internals of tRPC: it notices in `ws.send` that a subscription
 * has started and pairs it with the feed whose iterator is taken in the same turn. A feed behind a wrapper (a validator,
 * `.errors()`, a generator of yours), or one that it cannot pair, goes through tRPC's own loop as ever.
 *
 * Throws `OPTION_INVALID`.
 */
export function attachFeeds(wss: WebSocketServer, options: AttachFeedsOptions = {}): void {
  const resolved = resolveOptions(options);
  wss.on('connection', (ws: WebSocket, request: IncomingMessage) => {
    const connection = new FeedConnection(ws, request.socket, resolved, (data) => {
      const prefix = typeof data === 'string' ? STARTED.exec(data)?.[1] : undefined;
      if (prefix !== undefined) makeOffer(new WsOffer(connection, prefix));
    });
  });
}

/** The subscription that has just started on a connection. */
class WsOffer implements PushOffer {
  readonly #connection: FeedConnection;
  readonly #prefix: string;

  constructor(connection: FeedConnection, prefix: string) {
    this.#connection = connection;
    this.#prefix = prefix;
  }

  push(reader: Pick<FeedReader, 'push'>, serializer: Serializer): Promise<void> {
    return reader.push(new WsTarget(this.#connection, this.#prefix, wsEncoder(serializer)));
  }

  whenWritable(): Promise<void> | undefined {
    if (!this.#connection.isFull()) return undefined;
    return new Promise((resolve) => this.#connection.whenWritable(resolve));
  }
}

/** One subscription on a connection. */
class WsTarget implements PushTarget {
  readonly encoder: FrameEncoder;
  readonly #connection: FeedConnection;
  readonly #prefix: string;

  constructor(connection: FeedConnection, prefix: string, encoder: FrameEncoder) {
    this.#connection = connection;
    this.#prefix = prefix;
    this.encoder = encoder;
  }

  isFull(): boolean {
    return this.#connection.isFull();
  }

  whenWritable(callback: () => void): void {
    this.#connection.whenWritable(callback);
  }

  write(run: EncodedRun): void {
    this.#connection.write(this.#prefix, run);
  }
}

function resolveOptions(options: AttachFeedsOptions): FeedConnectionOptions {
  const { slowReader = 'wait' } = options;
  if (slowReader !== 'wait' && slowReader !== 'disconnect') {
    refuseOption('slowReader', "'wait' or 'disconnect'", slowReader);
  }
  return {
    maxBufferedBytes: integerOption('maxBufferedBytes', options.maxBufferedBytes, 1024 * 1024, 1),
    slowReader,
  };
}
