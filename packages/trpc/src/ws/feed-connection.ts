import type { Duplex } from 'node:stream';
import { type EncodedRun, type Outlet, scheduler, systemClock } from '@brokerfeed/core';
import type { WebSocket } from 'ws';
import { FrameTrial } from './frame-trial.ts';
import { textFrameLength, textFrames } from './text-frame.ts';

const OPEN = 1;

/** Subscribers with more distinct request ids than this have their frames written for each alone. */
const MAX_SHARED_PREFIXES = 16;

/** A prefix has a request id in it, which is the client's to choose. Nothing is kept under, or of, a longer one. */
export const MAX_SHARED_PREFIX_LENGTH = 64;

/** What was gathered is joined into one chunk up to so many bytes: more chunks would cost more than the copy. */
const MAX_COPIED_BYTES = 32 * 1024;

export interface FeedConnectionOptions {
  readonly maxBufferedBytes: number;
  /** How long a full socket may take nothing before it is cut; undefined for ever. */
  readonly drainTimeoutMs: number | undefined;
}

/** The stream below a WebSocket. Those of `node:net` and `node:tls` count what they are given. */
export type Carrier = Duplex & { readonly bytesWritten?: number };

/** Where a WebSocket keeps its {@link FeedConnection}. */
const CONNECTION: unique symbol = Symbol('feed connection');

interface Attached extends WebSocket {
  [CONNECTION]: FeedConnection;
}

/** One WebSocket to which feeds are pushed: what they write in a round leaves in one write, in order with all else. */
export class FeedConnection implements Outlet {
  readonly #ws: WebSocket;
  readonly #socket: Carrier | undefined;
  readonly #options: FeedConnectionOptions;
  readonly #afterSend: (data: unknown) => void;
  readonly #send: WebSocket['send'];
  readonly #close: WebSocket['close'];
  /**
   * Whether frames may be written on the socket, which is so once it has been seen to carry what `ws` sends as it is, and
   * while `ws` holds nothing back (that has `blocked` it).
   */
  #route: 'unproven' | 'socket' | 'blocked' | 'ws';
  #gathered: Uint8Array[] | undefined;
  #gatheredBytes = 0;
  #waiting: (() => void)[] | undefined;
  #stopWaiting: (() => void) | undefined;

  /** Takes the place of `ws.send`; `afterSend` sees what others have sent by it. */
  constructor(
    ws: WebSocket,
    socket: Carrier | undefined,
    options: FeedConnectionOptions,
    afterSend: (data: unknown) => void,
  ) {
    this.#ws = ws;
    this.#socket = socket;
    this.#options = options;
    // An extension may compress. A `send` that somebody else has put there wants to see all that is sent.
    const plain = ws.extensions === '' && !Object.hasOwn(ws, 'send');
    this.#route = plain && socket?.bytesWritten !== undefined ? 'unproven' : 'ws';
    this.#afterSend = afterSend;
    this.#send = ws.send;
    this.#close = ws.close;
    // Functions that all sockets share: with some of its own each would have a hidden class of its own, which weighs more
    // than this object and makes every access to a socket slow.
    Object.assign(ws, { [CONNECTION]: this, send: sendBehind, close: closeBehind });
  }

  /** Has `ws` send something, behind what was pushed before. */
  send(args: unknown[]): void {
    this.flush();
    this.#pass(args);
    this.#afterSend(args[0]);
  }

  /** Closes `ws`, behind what was pushed before. */
  close(args: unknown[]): void {
    this.flush();
    Reflect.apply(this.#close, this.#ws, args);
  }

  /** Gathers frames that all start with the same prefix. After a close frame nothing may follow: they are dropped then. */
  write(prefix: string, run: EncodedRun): void {
    if (this.#ws.readyState !== OPEN) return;
    if (!this.#reachesSocket()) {
      this.flush();
      for (const text of run.frames)
        this.#send.call(this.#ws, prefix + text, {}, () => this.#wake());
      return;
    }
    const bytes = framesOf(prefix, run);
    this.#gatheredBytes += bytes.length;
    if (this.#gathered !== undefined) this.#gathered.push(bytes);
    else {
      this.#gathered = [bytes];
      scheduler.flushLater(this);
    }
  }

  /** Writes what was gathered. */
  flush(): void {
    const gathered = this.#gathered;
    const bytes = this.#gatheredBytes;
    if (gathered === undefined) return;
    this.#gathered = undefined;
    this.#gatheredBytes = 0;
    if (this.#ws.readyState !== OPEN) return;
    if (bytes <= MAX_COPIED_BYTES) {
      this.#socket?.write(gathered.length === 1 ? gathered[0] : Buffer.concat(gathered));
      return;
    }
    // They leave together, and are not copied: a herd shares them.
    this.#socket?.cork();
    for (const chunk of gathered) this.#socket?.write(chunk);
    this.#socket?.uncork();
  }

  /** Whether it holds too much, or is over: then there is no use in reading on for it. */
  isFull(): boolean {
    if (this.#ws.readyState !== OPEN) return true;
    const { maxBufferedBytes } = this.#options;
    if (this.#route !== 'socket') return this.#ws.bufferedAmount > maxBufferedBytes;
    // A socket that holds less than its own mark does not say when it has drained.
    const limit = Math.max(maxBufferedBytes, this.#socket?.writableHighWaterMark ?? 0);
    return (this.#socket?.writableLength ?? 0) + this.#gatheredBytes > limit;
  }

  /** Calls back when the connection has drained. */
  whenWritable(callback: () => void): void {
    this.flush();
    if (this.#waiting !== undefined) this.#waiting.push(callback);
    else {
      this.#waiting = [callback];
      this.#stopWaiting = this.#waitForDrain();
    }
    if (!this.isFull()) setImmediate(() => this.#wake());
  }

  /** Wakes whoever waits once the socket has drained, or cuts it if that takes too long. Answers what ends the wait. */
  #waitForDrain(): () => void {
    const ws = this.#ws;
    const socket = this.#socket;
    const { drainTimeoutMs } = this.#options;
    const drained = (): void => this.#wake();
    socket?.on('drain', drained);
    if (drainTimeoutMs === undefined || !this.isFull()) {
      return () => socket?.off('drain', drained);
    }
    const cancel = systemClock.after(drainTimeoutMs, () => ws.terminate());
    ws.on('close', cancel);
    return () => {
      cancel();
      socket?.off('drain', drained);
      ws.off('close', cancel);
    };
  }

  #wake(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#stopWaiting?.();
    this.#waiting = undefined;
    this.#stopWaiting = undefined;
    for (const next of waiting) next();
  }

  /** Has `ws` send something, and sees what becomes of it. */
  #pass(args: unknown[]): void {
    const trial = FrameTrial.match(this, args[0]);
    const before = this.#written();
    // Where only `ws` knows when it has left, it is asked to tell.
    const told = this.#route === 'socket' || typeof args.at(-1) === 'function';
    Reflect.apply(this.#send, this.#ws, told ? args : [args[0], args[1], () => this.#wake()]);
    if (this.#route === 'unproven' && trial !== undefined) {
      const isWhole = this.#written() - before === textFrameLength(String(args[0]));
      this.#route = isWhole ? 'socket' : 'ws';
    }
    if (this.#route === 'socket' && this.#isHeldBack()) this.#route = 'blocked';
  }

  #written(): number {
    return this.#socket?.bytesWritten ?? 0;
  }

  /** Whether frames written on the socket would stay in order with all that `ws` was given. */
  #reachesSocket(): boolean {
    if (this.#route === 'blocked' && !this.#isHeldBack()) this.#route = 'socket';
    return this.#route === 'socket';
  }

  /** Whether `ws` has not passed on all that it was given. */
  #isHeldBack(): boolean {
    return this.#ws.bufferedAmount !== (this.#socket?.writableLength ?? 0);
  }
}

function sendBehind(this: Attached, ...args: unknown[]): void {
  this[CONNECTION].send(args);
}

function closeBehind(this: Attached, ...args: unknown[]): void {
  this[CONNECTION].close(args);
}

function framesOf(prefix: string, run: EncodedRun): Uint8Array {
  const shared = run.assembled?.get(prefix);
  if (shared !== undefined) return shared;
  const bytes = textFrames(prefix, run.frames);
  if (prefix.length > MAX_SHARED_PREFIX_LENGTH) return bytes;
  if (run.assembled !== undefined && run.assembled.size < MAX_SHARED_PREFIXES)
    run.assembled.set(prefix, bytes);
  return bytes;
}
