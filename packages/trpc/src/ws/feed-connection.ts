import type { Duplex } from 'node:stream';
import { type EncodedRun, type Outlet, scheduler, systemClock } from '@brokerfeed/core';
import type { WebSocket } from 'ws';
import { FrameTrial } from './frame-trial.ts';
import { textFrameLength, textFrames } from './text-frame.ts';

const OPEN = 1;

/** Subscribers with more distinct request ids than this have their frames written for each alone. */
const MAX_SHARED_PREFIXES = 16;

export interface FeedConnectionOptions {
  readonly maxBufferedBytes: number;
  /** How long a full socket may take nothing before it is cut; undefined for ever. */
  readonly drainTimeoutMs: number | undefined;
}

/** The stream below a WebSocket. Those of `node:net` and `node:tls` count what they are given. */
export type Carrier = Duplex & { readonly bytesWritten?: number };

/** One WebSocket to which feeds are pushed: what they write in a round leaves in one write, in order with all else. */
export class FeedConnection implements Outlet {
  readonly #ws: WebSocket;
  readonly #socket: Carrier | undefined;
  readonly #options: FeedConnectionOptions;
  readonly #send: WebSocket['send'];
  /** Whether frames may be written on the socket, which is so once it has been seen to carry what `ws` sends as it is. */
  #route: 'unproven' | 'socket' | 'ws';
  #gathered: Uint8Array[] = [];
  #gatheredBytes = 0;
  #waiting: (() => void)[] = [];
  #cancelTimeout: (() => void) | undefined;
  readonly #resume = (): void => this.#wake();

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
    socket?.on('drain', this.#resume);
    ws.on('close', () => this.#cancelTimeout?.());
    const { send, close } = ws;
    this.#send = send.bind(ws);
    ws.send = (...args: unknown[]) => {
      // What was pushed before must not be overtaken.
      this.flush();
      if (FrameTrial.match(this, args[0]) === undefined || this.#route !== 'unproven') {
        this.#pass(send, args);
      } else {
        const before = this.#written();
        this.#pass(send, args);
        const isWhole = this.#written() - before === textFrameLength(String(args[0]));
        this.#route = isWhole ? 'socket' : 'ws';
      }
      afterSend(args[0]);
    };
    ws.close = (...args) => {
      this.flush();
      close.apply(ws, args);
    };
  }

  /** Gathers frames that all start with the same prefix. After a close frame nothing may follow: they are dropped then. */
  write(prefix: string, run: EncodedRun): void {
    if (this.#ws.readyState !== OPEN) return;
    if (this.#goesThroughWs()) {
      this.flush();
      for (const payload of run.frames) {
        const text = Buffer.concat([Buffer.from(prefix), payload]);
        this.#send(text, { binary: false }, this.#resume);
      }
      return;
    }
    const bytes = framesOf(prefix, run);
    if (this.#gathered.length === 0) scheduler.flushLater(this);
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.length;
  }

  /** Writes what was gathered. */
  flush(): void {
    if (this.#gathered.length === 0) return;
    const gathered = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    if (this.#ws.readyState !== OPEN) return;
    this.#socket?.write(gathered.length === 1 ? gathered[0] : Buffer.concat(gathered));
  }

  /** Whether it holds too much, or is over: then there is no use in reading on for it. */
  isFull(): boolean {
    if (this.#ws.readyState !== OPEN) return true;
    return this.#ws.bufferedAmount + this.#gatheredBytes > this.#limit();
  }

  /** Calls back when the connection has drained. */
  whenWritable(callback: () => void): void {
    this.flush();
    this.#waiting.push(callback);
    if (!this.isFull()) setImmediate(this.#resume);
    else if (this.#options.drainTimeoutMs !== undefined) {
      this.#cancelTimeout ??= systemClock.after(this.#options.drainTimeoutMs, () =>
        this.#ws.terminate(),
      );
    }
  }

  #wake(): void {
    this.#cancelTimeout?.();
    this.#cancelTimeout = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const next of waiting) next();
  }

  /** Has `ws` send something. Where only it knows when that has left, it is asked to tell. */
  #pass(send: WebSocket['send'], args: unknown[]): void {
    const told = this.#route === 'socket' || typeof args.at(-1) === 'function';
    Reflect.apply(send, this.#ws, told ? args : [args[0], args[1], this.#resume]);
  }

  #written(): number {
    return this.#socket?.bytesWritten ?? 0;
  }

  /** A socket that holds less than its own mark does not say when it has drained. */
  #limit(): number {
    const { maxBufferedBytes } = this.#options;
    if (this.#route !== 'socket') return maxBufferedBytes;
    return Math.max(maxBufferedBytes, this.#socket?.writableHighWaterMark ?? 0);
  }

  /** Whether `ws` compresses, or holds back, what it is given: then only it knows the order. */
  #goesThroughWs(): boolean {
    return (
      this.#route !== 'socket' || this.#ws.bufferedAmount !== (this.#socket?.writableLength ?? 0)
    );
  }
}

function framesOf(prefix: string, run: EncodedRun): Uint8Array {
  const shared = run.assembled?.get(prefix);
  if (shared !== undefined) return shared;
  const bytes = textFrames(Buffer.from(prefix), run.frames);
  if (run.assembled !== undefined && run.assembled.size < MAX_SHARED_PREFIXES)
    run.assembled.set(prefix, bytes);
  return bytes;
}
