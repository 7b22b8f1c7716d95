import { crc32 } from 'node:zlib';

/*
 * Where each commit of one segment starts: per incarnation of a topic, the offsets of its commits, which have
 * consecutive ordinals. FORMAT.md has the bytes of its file. It is a cache of one machine: where that is big-endian, the
 * offsets are too.
 */

const MAGIC = Buffer.from('BFJI');
const VERSION = 1;
const HEAD_BYTES = 16;
const COUNTS_BYTES = 16;
const RUN_BYTES = 24;
const EPOCH_BYTES = 12;
const OFFSET_BYTES = 4;
/** What a run and an offset take in memory, about: where each of many topics has one commit, the runs are all there is. */
const RUN_MEMORY = 160;
const OFFSET_MEMORY = 8;

/** The commits of one incarnation in one segment. */
export interface IndexRun {
  /** The ordinal of the first of them. */
  readonly first: number;
  readonly offsets: ArrayLike<number> & { readonly length: number };
}

export class SegmentIndex {
  /** How much of the segment is covered, in bytes. */
  covered = 0;
  /** How many commits are known. */
  commits = 0;
  readonly #runs = new Map<string, { first: number; offsets: number[] | Uint32Array }>();

  /** Adds a commit. Those of one epoch come in the order of their ordinals. */
  add(epoch: string, ordinal: number, offset: number): void {
    const run = this.#runs.get(epoch);
    this.commits += 1;
    if (run === undefined) this.#runs.set(epoch, { first: ordinal, offsets: [offset] });
    else {
      // A run that came from a file becomes growable with its first addition.
      if (run.offsets instanceof Uint32Array) run.offsets = Array.from(run.offsets);
      run.offsets.push(offset);
    }
  }

  /** What it takes in memory, in bytes. */
  get memory(): number {
    return this.#runs.size * RUN_MEMORY + this.commits * OFFSET_MEMORY;
  }

  run(epoch: string): IndexRun | undefined {
    return this.#runs.get(epoch);
  }

  runs(): IterableIterator<[string, IndexRun]> {
    return this.#runs.entries();
  }

  encode(): Buffer {
    const body = Buffer.allocUnsafe(
      COUNTS_BYTES + this.#runs.size * RUN_BYTES + this.commits * OFFSET_BYTES,
    );
    body.writeDoubleLE(this.covered, 0);
    body.writeUInt32LE(this.#runs.size, 8);
    body.writeUInt32LE(0, 12);
    let head = COUNTS_BYTES;
    let at = COUNTS_BYTES + this.#runs.size * RUN_BYTES;
    for (const [epoch, run] of this.#runs) {
      body.write(epoch, head, 'latin1');
      body.writeUInt32LE(run.offsets.length, head + EPOCH_BYTES);
      body.writeDoubleLE(run.first, head + EPOCH_BYTES + 4);
      head += RUN_BYTES;
      const offsets = Uint32Array.from(run.offsets);
      body.set(new Uint8Array(offsets.buffer), at);
      at += offsets.byteLength;
    }
    const head16 = Buffer.alloc(HEAD_BYTES);
    MAGIC.copy(head16);
    head16.writeUInt32LE(VERSION, 4);
    head16.writeUInt32LE(crc32(body), 8);
    return Buffer.concat([head16, body]);
  }

  /** Reads an index file, or answers undefined where it is not whole. */
  static decode(file: Buffer): SegmentIndex | undefined {
    const body = file.subarray(HEAD_BYTES);
    if (body.length < COUNTS_BYTES || !file.subarray(0, 4).equals(MAGIC)) return undefined;
    if (file.readUInt32LE(4) !== VERSION || file.readUInt32LE(8) !== crc32(body)) return undefined;
    const index = new SegmentIndex();
    index.covered = body.readDoubleLE(0);
    const runs = body.readUInt32LE(8);
    let head = COUNTS_BYTES;
    let at = COUNTS_BYTES + runs * RUN_BYTES;
    for (let count = 0; count < runs; count += 1) {
      const epoch = body.toString('latin1', head, head + EPOCH_BYTES);
      const length = body.readUInt32LE(head + EPOCH_BYTES);
      // Copied: the file's bytes need not lie where four-byte numbers may.
      const offsets = new Uint32Array(
        new Uint8Array(body.subarray(at, at + length * OFFSET_BYTES)).buffer,
      );
      at += length * OFFSET_BYTES;
      index.#runs.set(epoch, { first: body.readDoubleLE(head + EPOCH_BYTES + 4), offsets });
      index.commits += length;
      head += RUN_BYTES;
    }
    return index;
  }
}
