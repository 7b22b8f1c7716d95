import type { Logger } from '@brokerfeed/core';
import { type Checkpoint, decodeCheckpoint, encodeCheckpoint } from './checkpoint.ts';
import type { FileSystem } from './file-system.ts';
import type { JournalState } from './journal-state.ts';
import { type Layout, parseCheckpointName } from './layout.ts';
import type { Segment } from './segment.ts';
import { SegmentIndex } from './segment-index.ts';

const KEPT_CHECKPOINTS = 2;

/** The files that can be deleted: checkpoints and indexes. What is wrong with them is logged and costs time, no data. */
export class Caches {
  readonly #fs: FileSystem;
  readonly #layout: Layout;
  readonly #logger: Logger;
  /** The newest checkpoint that is known to be durable: kept until another is. */
  #durable: number | undefined;

  constructor(fs: FileSystem, layout: Layout, logger: Logger) {
    this.#fs = fs;
    this.#layout = layout;
    this.#logger = logger;
  }

  /** Reads the newest checkpoint that `fits`. */
  loadCheckpoint(
    journal: string,
    keys: { windowMs: number; maxKeys: number },
    fits: (checkpoint: Checkpoint) => boolean,
  ): Checkpoint | undefined {
    for (const next of this.#checkpoints().reverse()) {
      const path = this.#layout.checkpoint(next);
      const bytes = this.#fs.readFile(path);
      const checkpoint = bytes && decodeCheckpoint(bytes, journal, keys);
      if (checkpoint !== undefined && fits(checkpoint)) {
        this.syncCheckpoint(next);
        return checkpoint;
      }
      this.#logger.warn({ file: path }, 'journal.checkpoint.ignored');
    }
    return undefined;
  }

  /** Writes the state's checkpoint and answers its size; 0 where it cannot be written. */
  saveCheckpoint(state: JournalState, now: number): number {
    const bytes = encodeCheckpoint(state, now);
    const path = this.#layout.checkpoint(state.next);
    const written = this.#tried(path, () => {
      this.#write(this.#layout.checkpoints, path, bytes);
      for (const old of this.#checkpoints().slice(0, -KEPT_CHECKPOINTS)) {
        if (old !== this.#durable) this.#fs.unlink(this.#layout.checkpoint(old));
      }
    });
    return written ? bytes.length : 0;
  }

  /** Makes a checkpoint durable. */
  syncCheckpoint(next: number): void {
    const path = this.#layout.checkpoint(next);
    this.#tried(path, () => {
      const file = this.#fs.openForRepair(path);
      try {
        file.dataSyncNow();
      } finally {
        file.close();
      }
      this.#fs.syncDir(this.#layout.checkpoints);
      this.#fs.syncDir(this.#layout.dir);
      this.#durable = next;
    });
  }

  /** Reads a segment's index where it covers exactly `bytes` of it. */
  loadIndex(segment: Segment, bytes: number): SegmentIndex | undefined {
    const path = this.#layout.index(segment.first);
    const file = this.#fs.readFile(path);
    const index = file && SegmentIndex.decode(file);
    if (index?.covered === bytes) return index;
    this.#logger.warn({ file: path, missing: file === undefined }, 'journal.index.ignored');
    return undefined;
  }

  /** Writes a segment's index and answers its size. */
  saveIndex(segment: Segment, index: SegmentIndex): number {
    const bytes = index.encode();
    const path = this.#layout.index(segment.first);
    this.#tried(path, () => {
      // Out of the way first: some file systems force the new file to the disk when it replaces one.
      this.#fs.unlink(path);
      this.#write(this.#layout.indexes, path, bytes);
    });
    return bytes.length;
  }

  dropIndex(first: number): void {
    this.#fs.unlink(this.#layout.index(first));
  }

  #checkpoints(): number[] {
    return this.#fs
      .list(this.#layout.checkpoints)
      .flatMap((name) => parseCheckpointName(name) ?? []);
  }

  #write(folder: string, path: string, bytes: Buffer): void {
    const temporary = `${path}.tmp`;
    this.#fs.makeDir(folder);
    this.#fs.writeFile(temporary, bytes, 'no-sync');
    this.#fs.rename(temporary, path);
  }

  /** Works on a cache. A full disk must not fail an append because of one. */
  #tried(path: string, work: () => void): boolean {
    try {
      work();
      return true;
    } catch (error) {
      this.#logger.warn({ file: path, err: error }, 'journal.cache.not-written');
      return false;
    }
  }
}
