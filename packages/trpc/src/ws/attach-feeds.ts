import type { IncomingMessage } from 'node:http';
import { integerOption, refuseOption } from '@brokerfeed/core';
import type { WebSocket, WebSocketServer } from 'ws';
import { Drain, type Drainable } from '../drain.ts';
import { makeOffer } from '../push-offer.ts';
import { DrainSocket } from './drain-socket.ts';
import { FeedConnection, type FeedConnectionOptions } from './feed-connection.ts';
import { WsOffer } from './ws-offer.ts';

/** Options of {@link attachFeeds}. */
export interface AttachFeedsOptions {
  /**
   * A subscription pauses while its socket holds more than this, in bytes, and catches up once it has drained.
   * @default 1048576 (1 MiB)
   */
  readonly maxBufferedBytes?: number;
  /**
   * What happens to a client that does not drain its socket: its subscriptions wait for it, or it is disconnected after
   * `drainTimeoutMs`, and resumes.
   * @default 'wait'
   */
  readonly slowReader?: 'wait' | 'disconnect';
  /**
   * How long a socket that holds `maxBufferedBytes` may take to drain before it is disconnected, in milliseconds.
   * @default 30000
   */
  readonly drainTimeoutMs?: number;
}

/** Longer timers fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** `started` as tRPC's JSON encoder writes it: the first group is what every later frame of the subscription starts with. */
const STARTED =
  /^(\{"id":(?:\d+|"(?:[^"\\]|\\.)*"),(?:"jsonrpc":"2\.0",)?)"result":\{"type":"started"\}\}$/;

/** A connection is attached once, however many handlers are applied to its server. */
const attached = new WeakSet<WebSocket>();

/** So is a server: beside whichever of its handlers that is done again, the answer is the same. */
const drainables = new WeakMap<WebSocketServer, Drainable>();

/**
 * Makes the feeds of a WebSocket server cheap and safe for slow readers: one line beside tRPC's own `applyWSSHandler`, in
 * any order. Frames are encoded once for all subscribers that get the same, written together, and held back from a
 * socket that does not drain.
 *
 * It changes nothing that a client can see, but that a value which cannot be written is skipped or ends the feed, as
 * `onEntryError` says, from a feed's second frame on.
 *
 * It uses no internals of tRPC: it notices in `ws.send` that a subscription has started and pairs it with the feed whose
 * iterator is taken in the same turn. The first frame goes through tRPC's own loop. Where that was sent just as it would
 * have been pushed, the others are pushed. A feed behind a wrapper (a validator, `.errors()`, a generator of yours), or
 * whose frames an `experimental_encoder` writes differently, goes through the loop as ever.
 *
 * An encoder that writes JSON as tRPC does, but for values that the first frame does not have, is not noticed: leave
 * such a server alone.
 *
 * What it answers moves the clients elsewhere before a deploy: see {@link Drainable.drain}.
 *
 * A server is attached once: a second call changes nothing, and answers what the first one did.
 *
 * Throws `OPTION_INVALID`.
 */
export function attachFeeds(wss: WebSocketServer, options: AttachFeedsOptions = {}): Drainable {
  const resolved = resolveOptions(options);
  const before = drainables.get(wss);
  if (before !== undefined) return before;
  const drain = new Drain(() => {
    // Refused, a client tries again elsewhere and takes its time; let in and sent away, it would come back at once.
    wss.shouldHandle = () => false;
  });
  wss.on('connection', (ws: WebSocket, request: IncomingMessage | undefined) => {
    if (attached.has(ws)) return;
    attached.add(ws);
    const member = new DrainSocket(ws);
    drain.add(member);
    ws.on('close', () => drain.delete(member));
    const connection = new FeedConnection(ws, request?.socket, resolved, (data) => {
      member.sent(data);
      const prefix = typeof data === 'string' ? STARTED.exec(data)?.[1] : undefined;
      if (prefix !== undefined) makeOffer(new WsOffer(connection, prefix));
    });
  });
  const drainable: Drainable = { drain: (options) => drain.drain(options) };
  drainables.set(wss, drainable);
  return drainable;
}

function resolveOptions(options: AttachFeedsOptions): FeedConnectionOptions {
  const { slowReader = 'wait' } = options;
  if (slowReader !== 'wait' && slowReader !== 'disconnect') {
    refuseOption('slowReader', "'wait' or 'disconnect'", slowReader);
  }
  const drainTimeoutMs = integerOption(
    'drainTimeoutMs',
    options.drainTimeoutMs,
    30_000,
    1,
    MAX_TIMER_MS,
  );
  return {
    maxBufferedBytes: integerOption('maxBufferedBytes', options.maxBufferedBytes, 1024 * 1024, 1),
    drainTimeoutMs: slowReader === 'disconnect' ? drainTimeoutMs : undefined,
  };
}
