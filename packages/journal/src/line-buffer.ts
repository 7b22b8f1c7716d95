import { finishLine, LINE_HEAD } from './line.ts';

const FIRST_BYTES = 64 * 1024;
/** A buffer that one large write made is not kept for ever. */
const KEPT_BYTES = 4 * 1024 * 1024;
/** UTF-16 units that are gathered before they are encoded. */
const CHUNK_UNITS = 32 * 1024;
/** The most UTF-8 bytes that one UTF-16 unit becomes. */
const BYTES_PER_UNIT = 3;
/** Stands where a checksum and its space will be. */
const BLANK_HEAD = ' '.repeat(LINE_HEAD);
const LF = 0x0a;

/**
 * Lines on their way to a file, one after another in one buffer that is used again. They are gathered as text and become
 * bytes many at a time: a call into the engine for each of them would cost as much as all else.
 */
export class LineBuffer {
  /** Where each line starts, once `bytes` was called. */
  readonly starts: number[] = [];
  #buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;
  #text = '';

  /** Adds a line. */
  add(json: string): void {
    this.#text += `${BLANK_HEAD}${json}\n`;
    if (this.#text.length >= CHUNK_UNITS) this.#encode();
  }

  /** All lines since the last `clear`. Good until the next one. */
  bytes(): Buffer {
    this.#encode();
    return this.#buffer.subarray(0, this.#length);
  }

  clear(): void {
    this.starts.length = 0;
    this.#length = 0;
    this.#text = '';
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = Buffer.allocUnsafe(FIRST_BYTES);
  }

  #encode(): void {
    const most = this.#length + this.#text.length * BYTES_PER_UNIT;
    if (most > this.#buffer.length) this.#grow(most);
    const end = this.#length + this.#buffer.write(this.#text, this.#length);
    while (this.#length < end) {
      const start = this.#length;
      // JSON has no raw line feeds.
      const feed = this.#buffer.indexOf(LF, start + LINE_HEAD);
      this.starts.push(start);
      this.#length = finishLine(this.#buffer, start, feed - start - LINE_HEAD);
    }
    this.#text = '';
  }

  #grow(atLeast: number): void {
    const grown = Buffer.allocUnsafe(Math.max(atLeast, this.#buffer.length * 2));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
