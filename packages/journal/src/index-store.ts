import type { Logger } from '@brokerfeed/core';
import type { Caches } from './caches.ts';
import { damaged } from './damage.ts';
import type { Layout } from './layout.ts';
import { scanLines } from './line.ts';
import { isCommit, parseRecord } from './record.ts';
import type { Segment } from './segment.ts';
import type { SegmentFiles } from './segment-files.ts';
import { SegmentIndex } from './segment-index.ts';

/** What loaded indexes may take in memory in all, in bytes. */
const MAX_BYTES = 64 * 1024 * 1024;

interface Loaded {
  readonly index: Promise<SegmentIndex>;
  /** What it takes in memory, once it is there. */
  bytes: number;
}

/** The indexes of the segments that are being read. */
export class IndexStore {
  readonly #files: SegmentFiles;
  readonly #caches: Caches;
  readonly #layout: Layout;
  readonly #logger: Logger;
  readonly #maxBytes: number;
  /** Least recently used first. */
  readonly #loaded = new Map<Segment, Loaded>();
  #bytes = 0;

  constructor(
    files: SegmentFiles,
    caches: Caches,
    layout: Layout,
    logger: Logger,
    maxBytes: number = MAX_BYTES,
  ) {
    this.#files = files;
    this.#caches = caches;
    this.#layout = layout;
    this.#logger = logger;
    this.#maxBytes = maxBytes;
  }

  /** The index of a pinned segment. */
  of(segment: Segment): SegmentIndex | Promise<SegmentIndex> {
    // The active one has it at hand, and so has one that was just recovered.
    if (segment.index !== undefined) return segment.index;
    const known = this.#loaded.get(segment);
    if (known === undefined) return this.#keep(segment, this.#load(segment));
    this.#loaded.delete(segment);
    this.#loaded.set(segment, known);
    return known.index;
  }

  /** Moves the index of a segment that is no longer written to among those that may be let go. */
  release(segment: Segment): void {
    const { index } = segment;
    if (index === undefined) return;
    segment.index = undefined;
    void this.#keep(segment, Promise.resolve(index));
  }

  #keep(segment: Segment, index: Promise<SegmentIndex>): Promise<SegmentIndex> {
    const loaded: Loaded = { index, bytes: 0 };
    this.#loaded.set(segment, loaded);
    index.then(
      ({ memory }) => {
        if (this.#loaded.get(segment) !== loaded) return;
        loaded.bytes = memory;
        this.#bytes += memory;
        this.#evict();
      },
      () => this.#loaded.delete(segment),
    );
    return index;
  }

  async #load(segment: Segment): Promise<SegmentIndex> {
    const stored = this.#caches.loadIndex(segment, segment.bytes);
    if (stored !== undefined) return stored;
    const index = await this.#rebuild(segment);
    this.#logger.warn({ segment: segment.first, commits: index.commits }, 'journal.index.rebuilt');
    this.#caches.saveIndex(segment, index);
    return index;
  }

  async #rebuild(segment: Segment): Promise<SegmentIndex> {
    const path = this.#layout.segment(segment.first);
    const bytes = Buffer.allocUnsafe(segment.bytes);
    const file = this.#files.file(segment);
    for (let at = 0; at < bytes.length; ) {
      const count = await file.read(bytes.subarray(at), at);
      if (count === 0)
        throw damaged(path, at, `the file ends, and should have ${bytes.length} bytes`);
      at += count;
    }
    return indexOf(bytes, path);
  }

  #evict(): void {
    for (const [segment, { bytes }] of this.#loaded) {
      if (this.#bytes <= this.#maxBytes || this.#loaded.size === 1) return;
      this.#loaded.delete(segment);
      this.#bytes -= bytes;
    }
  }
}

/** Indexes the bytes of a whole segment. */
function indexOf(bytes: Buffer, path: string): SegmentIndex {
  const index = new SegmentIndex();
  const epochs = new Map<string, string>();
  let header = true;
  scanLines(bytes, (text, start) => {
    if (text === undefined) throw damaged(path, start, 'the line is not whole');
    if (header) {
      header = false;
      return true;
    }
    const record = parseRecord(text);
    if (!isCommit(record)) return true;
    for (const { topic, ordinal, epoch } of record.commits) {
      if (epoch !== undefined) epochs.set(topic, epoch);
      const named = epochs.get(topic);
      if (named === undefined) throw damaged(path, start, 'a commit before its epoch');
      index.add(named, ordinal, start);
    }
    return true;
  });
  index.covered = bytes.length;
  return index;
}
