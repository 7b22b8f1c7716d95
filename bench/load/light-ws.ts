import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import {
  HEAD_END,
  type LightSocket,
  type LightSocketOptions,
  READ_BUFFER,
} from './light-socket.ts';

const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;
const PING = 9;
const PONG = 10;

/** A WebSocket without fragments and extensions. What it sends is masked with zeros, which masks nothing. */
export class LightWs implements LightSocket {
  readonly #options: LightSocketOptions;
  readonly #socket: Socket;
  #rest: Buffer | undefined;
  #open = false;

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
    this.#socket.on('connect', () => this.#socket.write(upgrade(url, options.protocol)));
    this.#socket.on('error', () => {});
    this.#socket.on('close', () => options.onClose());
  }

  send(text: string): void {
    this.#send(TEXT, Buffer.from(text));
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #read(length: number): void {
    let buffer = READ_BUFFER;
    let end = length;
    if (this.#rest !== undefined) {
      buffer = Buffer.concat([this.#rest, READ_BUFFER.subarray(0, length)]);
      end = buffer.length;
      this.#rest = undefined;
    }
    const start = this.#open ? 0 : this.#readHead(buffer, end);
    const read = start < 0 ? 0 : this.#readFrames(buffer, start, end);
    if (read < end) this.#rest = Buffer.from(buffer.subarray(read, end));
  }

  /** Answers where the frames begin, or -1 while they do not. */
  #readHead(buffer: Buffer, end: number): number {
    const at = buffer.subarray(0, end).indexOf(HEAD_END);
    if (at < 0) return -1;
    const head = buffer.toString('latin1', 0, at);
    if (!head.startsWith('HTTP/1.1 101')) throw new Error(`no WebSocket: ${head}`);
    this.#open = true;
    this.#options.onOpen();
    return at + HEAD_END.length;
  }

  /** Answers up to where whole frames were read. */
  #readFrames(buffer: Buffer, start: number, end: number): number {
    let at = start;
    while (end - at >= 2) {
      let length = (buffer[at + 1] as number) & 127;
      let head = 2;
      if (length === 126) head = 4;
      else if (length === 127) head = 10;
      if (end - at < head) break;
      if (head === 4) length = buffer.readUInt16BE(at + 2);
      else if (head === 10) length = Number(buffer.readBigUInt64BE(at + 2));
      if (end - at < head + length) break;
      const opcode = (buffer[at] as number) & 15;
      const first = at + head;
      at = first + length;
      if (opcode === TEXT || opcode === BINARY) this.#options.onFrame(buffer, first, at);
      else if (opcode === PING) this.#send(PONG, buffer.subarray(first, at));
      else if (opcode === CLOSE) this.destroy();
    }
    return at;
  }

  #send(opcode: number, payload: Buffer): void {
    const { length } = payload;
    const head = length < 126 ? 2 : 4;
    if (length > 0xffff) throw new Error('a load client sends short frames alone');
    const frame = Buffer.alloc(head + 4 + length);
    frame[0] = 0x80 | opcode;
    frame[1] = 0x80 | (head === 2 ? length : 126);
    if (head === 4) frame.writeUInt16BE(length, 2);
    payload.copy(frame, head + 4);
    this.#socket.write(frame);
  }
}

function upgrade(url: URL, protocol: string | undefined): string {
  const lines = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    'Upgrade: websocket',
    'Connection: Upgrade',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
    'Sec-WebSocket-Version: 13',
  ];
  if (protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
  return lines.join('\r\n') + HEAD_END;
}
