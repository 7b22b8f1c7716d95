import type { Duplex } from 'node:stream';
import { type EncodedRun, type Outlet, scheduler } from '@brokerfeed/core';
import type { WebSocket } from 'ws';
import { textFrames } from './text-frame.ts';

const OPEN = 1;

/** Subscribers with more distinct request ids than this have their frames written for each alone. */
const MAX_SHARED_PREFIXES = 16;

export interface FeedConnectionOptions {
  readonly maxBufferedBytes: number;
  readonly slowReader: 'wait' | 'disconnect';
}

/** One WebSocket to which feeds are pushed: what they write in a round leaves in one write, in order with all else. */
export class FeedConnection implements Outlet {
  readonly #ws: WebSocket;
  readonly #socket: Duplex;
  readonly #options: FeedConnectionOptions;
  readonly #send: WebSocket['send'];
  /** Settled by the handshake. */
  readonly #deflates: boolean;
  #gathered: Uint8Array[] = [];
  #gatheredBytes = 0;
  #waiting: (() => void)[] = [];

  /** Takes the place of `ws.send`; `afterSend` sees what others have sent by it. */
  constructor(
    ws: WebSocket,
    socket: Duplex,
    options: FeedConnectionOptions,
    afterSend: (data: unknown) => void,
  ) {
    this.#ws = ws;
    this.#socket = socket;
    this.#options = options;
    this.#deflates = ws.extensions !== '';
    socket.on('drain', () => this.#resume());
    socket.on('close', () => this.#resume());
    const send = ws.send;
    this.#send = send.bind(ws);
    ws.send = (...args: unknown[]) => {
      // What was pushed before must not be overtaken.
      this.flush();
      Reflect.apply(send, ws, args);
      afterSend(args[0]);
    };
  }

  /** Bytes written and not yet taken by the network. */
  get bufferedBytes(): number {
    return this.#ws.bufferedAmount + this.#gatheredBytes;
  }

  /** Gathers frames that all start with the same prefix. */
  write(prefix: string, run: EncodedRun): void {
    if (this.#ws.readyState !== OPEN) return;
    if (this.#goesThroughWs()) {
      const sent = (): void => this.#resume();
      for (const payload of run.frames) {
        this.#send(Buffer.concat([Buffer.from(prefix), payload]), { binary: false }, sent);
      }
      return;
    }
    const bytes = framesOf(prefix, run);
    if (this.#gathered.length === 0) scheduler.flushLater(this);
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.length;
  }

  /** Writes what was gathered. After a close frame nothing may follow: it is dropped then, and the client resumes. */
  flush(): void {
    if (this.#gathered.length === 0) return;
    const gathered = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    if (this.#ws.readyState !== OPEN) return;
    this.#socket.write(gathered.length === 1 ? gathered[0] : Buffer.concat(gathered));
  }

  isFull(): boolean {
    return this.bufferedBytes > this.#options.maxBufferedBytes;
  }

  /** Calls back when the connection has drained or is gone; a reader that is not waited for is disconnected. */
  whenWritable(callback: () => void): void {
    if (this.#options.slowReader === 'disconnect') this.#ws.terminate();
    this.flush();
    this.#waiting.push(callback);
    if (this.#socket.destroyed || !this.isFull()) setImmediate(() => this.#resume());
  }

  #resume(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const next of waiting) next();
  }

  /** Whether `ws` compresses, or holds back, what it is given: then only it knows the order. */
  #goesThroughWs(): boolean {
    return this.#deflates || this.#ws.bufferedAmount !== this.#socket.writableLength;
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
