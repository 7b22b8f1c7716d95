import {
  type EncodedRun,
  type FrameEncoder,
  type Outlet,
  type PushTarget,
  scheduler,
} from '@brokerfeed/core';
import type { NodeResponse } from './node-response.ts';

/** How the first event of a subscription starts, as tRPC writes it. */
const CONNECTED = 'event: connected\ndata: ';

/** All of that event, and all that may come of it before the blank line. Only after exactly this is the format known. */
const CONNECTED_WHOLE = /^event: connected\ndata: [^\n]*\n\n\n$/;
const CONNECTED_PART = /^event: connected\ndata: [^\n]*\n?$/;

/** Ends an event, and stands nowhere inside one. */
const BLANK_LINE = '\n\n';

type Phase =
  /** Waits for tRPC's first event, of which this much was written. */
  | { readonly phase: 'opening'; readonly text: string }
  /** Whatever was written was written whole: events may follow. */
  | { readonly phase: 'between' }
  /** tRPC writes an event of its own, such as a ping, chunk by chunk. The last one ended like this. */
  | { readonly phase: 'inside'; readonly end: string }
  | { readonly phase: 'over' };

/**
 * A response of tRPC's to which a feed is pushed: what comes in a round leaves in one write, between the events that tRPC
 * writes itself and in order with them.
 */
export class EventStream implements PushTarget, Outlet {
  readonly encoder: FrameEncoder;
  /** Resolves with this stream once it has begun as tRPC's do; with undefined if it has not, or is over before. */
  readonly opened: Promise<EventStream | undefined>;
  readonly #response: NodeResponse;
  readonly #maxBufferedBytes: number;
  readonly #write: (chunk: Uint8Array) => boolean;
  #open!: (stream: EventStream | undefined) => void;
  #phase: Phase = { phase: 'opening', text: '' };
  #gathered: Uint8Array[] = [];
  #gatheredBytes = 0;
  /** Bytes written since the response last took all that it held. */
  #heldBytes = 0;
  #waiting: (() => void)[] = [];

  /** Takes the place of the response's `write` and `end`. */
  constructor(response: NodeResponse, encoder: FrameEncoder, maxBufferedBytes: number) {
    this.encoder = encoder;
    this.#response = response;
    this.#maxBufferedBytes = maxBufferedBytes;
    this.opened = new Promise((resolve) => {
      this.#open = resolve;
    });
    response.on('drain', () => {
      this.#heldBytes = 0;
      this.#wake();
    });
    response.on('close', () => this.#end());
    const { write, end } = response;
    this.#write = write.bind(response);
    response.end = (...args: unknown[]) => {
      this.flush();
      return Reflect.apply(end, response, args);
    };
    response.write = (...args: unknown[]) => {
      // What was pushed before must not be overtaken.
      this.flush();
      const takesMore: boolean = Reflect.apply(write, response, args);
      this.#passed(args[0]);
      return takesMore;
    };
  }

  /** Gathers events. */
  write(run: EncodedRun): void {
    if (this.#phase.phase === 'over') return;
    const bytes = bytesOf(run);
    if (this.#gathered.length === 0) scheduler.flushLater(this);
    this.#gathered.push(bytes);
    this.#gatheredBytes += bytes.length;
  }

  /** Writes what was gathered, unless it would land inside an event. After the end it is dropped: the client resumes. */
  flush(): void {
    if (this.#phase.phase !== 'between' || this.#gathered.length === 0) return;
    const gathered = this.#gathered;
    this.#gathered = [];
    this.#gatheredBytes = 0;
    if (this.#response.writableEnded) return;
    const bytes = gathered.length === 1 ? (gathered[0] as Uint8Array) : Buffer.concat(gathered);
    this.#heldBytes = this.#write(bytes) ? 0 : this.#heldBytes + bytes.length;
    this.#response.flush?.();
  }

  isFull(): boolean {
    return this.#heldBytes + this.#gatheredBytes > this.#maxBufferedBytes;
  }

  /** Calls back when the response has drained or is gone. */
  whenWritable(callback: () => void): void {
    this.flush();
    this.#waiting.push(callback);
    if (this.#phase.phase === 'over' || !this.isFull()) setImmediate(() => this.#wake());
  }

  /** Notes what tRPC wrote, and with that whether it is in the middle of an event. */
  #passed(chunk: unknown): void {
    const phase = this.#phase;
    switch (phase.phase) {
      case 'opening':
        this.#passedOpening(phase.text + textOf(chunk));
        break;
      case 'between':
        this.#passedEvent(BLANK_LINE + textOf(chunk));
        break;
      case 'inside':
        this.#passedEvent(phase.end + textOf(chunk));
        break;
      case 'over':
        break;
      default:
        phase satisfies never;
    }
  }

  #passedOpening(text: string): void {
    if (CONNECTED_WHOLE.test(text)) {
      this.#phase = { phase: 'between' };
      this.#open(this);
    } else if (CONNECTED.startsWith(text) || CONNECTED_PART.test(text)) {
      this.#phase = { phase: 'opening', text };
    } else {
      this.#end();
    }
  }

  #passedEvent(text: string): void {
    if (!text.endsWith(BLANK_LINE)) {
      this.#phase = { phase: 'inside', end: text.slice(-1) };
      return;
    }
    this.#phase = { phase: 'between' };
    this.flush();
    if (!this.isFull()) this.#wake();
  }

  #end(): void {
    this.#phase = { phase: 'over' };
    this.#gathered = [];
    this.#gatheredBytes = 0;
    this.#heldBytes = 0;
    this.#open(undefined);
    this.#wake();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const next of waiting) next();
  }
}

/** The frames of a run as one piece, which all that get the same write. */
function bytesOf(run: EncodedRun): Uint8Array {
  const shared = run.assembled?.get('');
  if (shared !== undefined) return shared;
  const bytes = Buffer.from(run.frames.join(''));
  run.assembled?.set('', bytes);
  return bytes;
}

function textOf(chunk: unknown): string {
  if (typeof chunk === 'string') return chunk;
  return chunk instanceof Uint8Array
    ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString()
    : '';
}
