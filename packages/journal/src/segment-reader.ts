import { damaged } from './damage.ts';
import type { ReadableFile } from './file-system.ts';
import type { IndexRun } from './segment-index.ts';

const LF = 0x0a;
/** Commits that lie closer together than this are read at once: skipping costs more than reading. */
const MAX_SKIPPED_BYTES = 16 * 1024;
const MAX_CHUNK_BYTES = 512 * 1024;
/** What is guessed for the line that a chunk ends with, whose length the index does not tell. */
const LAST_LINE_BYTES = 4 * 1024;

/** One line in a buffer, without its line feed, and its place in the file. */
export interface SegmentLine {
  readonly buffer: Buffer;
  readonly start: number;
  readonly end: number;
  readonly at: number;
}

/** Reads the lines of consecutive commits, in as few reads as their places allow. */
export class SegmentReader {
  readonly path: string;
  readonly #file: ReadableFile;
  readonly #run: IndexRun;
  readonly #last: number;
  #chunk: Buffer = Buffer.alloc(0);
  #chunkAt = 0;

  /** `last` is the ordinal of the last commit that will be asked for. */
  constructor(file: ReadableFile, path: string, run: IndexRun, last: number) {
    this.#file = file;
    this.path = path;
    this.#run = run;
    this.#last = last;
  }

  /** Reads the line of a commit. Ordinals are asked for in ascending order. */
  async line(ordinal: number): Promise<SegmentLine> {
    const at = this.#offset(ordinal);
    for (let bytes = this.#stretchBytes(ordinal, at); ; bytes *= 2) {
      const start = at - this.#chunkAt;
      const feed = start >= 0 && start < this.#chunk.length ? this.#chunk.indexOf(LF, start) : -1;
      if (feed >= 0) return { buffer: this.#chunk, start, end: feed, at };
      await this.#load(at, bytes);
    }
  }

  #offset(ordinal: number): number {
    return this.#run.offsets[ordinal - this.#run.first] as number;
  }

  /** How far to read: to the last commit before a large hole. */
  #stretchBytes(ordinal: number, at: number): number {
    let end = at;
    for (let next = ordinal + 1; next <= this.#last; next += 1) {
      const offset = this.#offset(next);
      if (offset - end > MAX_SKIPPED_BYTES || offset - at > MAX_CHUNK_BYTES) break;
      end = offset;
    }
    return end - at + LAST_LINE_BYTES;
  }

  async #load(at: number, bytes: number): Promise<void> {
    const known = this.#chunkAt === at ? this.#chunk.length : 0;
    const chunk = Buffer.allocUnsafe(bytes);
    let length = 0;
    while (length < bytes) {
      const count = await this.#file.read(chunk.subarray(length), at + length);
      if (count === 0) break;
      length += count;
    }
    // Nothing more than before: the file ends inside the line.
    if (length <= known) throw damaged(this.path, at, 'the file ends inside the line');
    this.#chunk = chunk.subarray(0, length);
    this.#chunkAt = at;
  }
}
