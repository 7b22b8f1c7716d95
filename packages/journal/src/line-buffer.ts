import { finishLine, LINE_HEAD } from './line.ts';

const FIRST_BYTES = 64 * 1024;
/** A buffer that one large write made is not kept for ever. */
const KEPT_BYTES = 4 * 1024 * 1024;
/** The most UTF-8 bytes that one UTF-16 unit becomes. */
const BYTES_PER_UNIT = 3;

/** Lines on their way to a file, one after another in one buffer that is used again. */
export class LineBuffer {
  #buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Adds a line and answers where it starts. */
  add(json: string): number {
    const start = this.#length;
    const most = start + LINE_HEAD + json.length * BYTES_PER_UNIT + 1;
    if (most > this.#buffer.length) this.#grow(most);
    const written = this.#buffer.write(json, start + LINE_HEAD);
    this.#length = finishLine(this.#buffer, start, written);
    return start;
  }

  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
    if (this.#buffer.length > KEPT_BYTES) this.#buffer = Buffer.allocUnsafe(FIRST_BYTES);
  }

  #grow(atLeast: number): void {
    const grown = Buffer.allocUnsafe(Math.max(atLeast, this.#buffer.length * 2));
    this.#buffer.copy(grown, 0, 0, this.#length);
    this.#buffer = grown;
  }
}
