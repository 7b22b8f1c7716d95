import { connect, type Socket } from 'node:net';
import {
  HEAD_END,
  type LightSocket,
  type LightSocketOptions,
  READ_BUFFER,
} from './light-socket.ts';

const LF = 10;
const NONE = Buffer.alloc(0);

/** Where the body stands: inside a chunk with so many bytes to come, or in the line that says how many. */
type Chunking = { readonly part: 'data'; left: number } | { readonly part: 'size'; digits: string };

/** A client of server-sent events over chunked HTTP. A frame is an event with all its lines. */
export class LightSse implements LightSocket {
  readonly #options: LightSocketOptions;
  readonly #socket: Socket;
  #open = false;
  #head = '';
  #rest: Buffer = NONE;
  #chunking: Chunking = { part: 'size', digits: '' };

  constructor(options: LightSocketOptions) {
    this.#options = options;
    const url = new URL(options.url);
    const onread = {
      buffer: READ_BUFFER,
      callback: (length: number): boolean => {
        this.#read(length);
        return true;
      },
    };
    this.#socket = connect({ host: url.hostname, port: Number(url.port), noDelay: true, onread });
    this.#socket.on('connect', () => {
      this.#socket.write(
        [
          `GET ${url.pathname}${url.search} HTTP/1.1`,
          `Host: ${url.host}`,
          'Accept: text/event-stream',
        ].join('\r\n') + HEAD_END,
      );
    });
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => options.onClose());
  }

  send(): void {
    throw new Error('an event stream has one direction');
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(length: number): void {
    let start = 0;
    if (!this.#open) {
      this.#head += READ_BUFFER.toString('latin1', 0, length);
      const at = this.#head.indexOf(HEAD_END);
      if (at < 0) return;
      if (!this.#head.startsWith('HTTP/1.1 200')) throw new Error(`no event stream: ${this.#head}`);
      this.#open = true;
      // The head's last bytes are in this read: what was read before it held no end.
      start = length - (this.#head.length - at - HEAD_END.length);
      this.#options.onOpen();
    }
    const body = this.#unchunk(start, length);
    const read = this.#readEvents(body);
    this.#rest = read === body.length ? NONE : body.subarray(read);
  }

  /** Answers what was left over and the bytes of the body that were read, in one piece. */
  #unchunk(start: number, end: number): Buffer {
    const body = Buffer.allocUnsafe(this.#rest.length + end - start);
    let size = this.#rest.copy(body);
    let at = start;
    while (at < end) {
      const chunking = this.#chunking;
      if (chunking.part === 'data') {
        const taken = READ_BUFFER.copy(body, size, at, Math.min(end, at + chunking.left));
        size += taken;
        at += taken;
        chunking.left -= taken;
        if (chunking.left === 0) this.#chunking = { part: 'size', digits: '' };
      } else {
        const byte = READ_BUFFER[at] as number;
        at += 1;
        if (byte !== LF) chunking.digits += String.fromCharCode(byte);
        // The line break after a chunk's data comes by here too, and holds no digits.
        else if (chunking.digits.trim() !== '') {
          this.#chunking = { part: 'data', left: Number.parseInt(chunking.digits, 16) };
        }
      }
    }
    return body.subarray(0, size);
  }

  /** Answers up to where whole events were read. */
  #readEvents(body: Buffer): number {
    let at = 0;
    for (;;) {
      while (body[at] === LF) at += 1;
      const end = body.indexOf('\n\n', at, 'latin1');
      if (end < 0) return at;
      this.#options.onFrame(body, at, end);
      at = end + 2;
    }
  }
}
