import type { Logger } from '@brokerfeed/core';
import type { Caches } from './caches.ts';
import { damaged } from './damage.ts';
import type { Layout } from './layout.ts';
import { scanLines } from './line.ts';
import { isCommit, parseRecord } from './record.ts';
import type { Segment } from './segment.ts';
import type { SegmentFiles } from './segment-files.ts';
import { SegmentIndex } from './segment-index.ts';

/** Commits that loaded indexes may know in all: four bytes of memory each. */
const MAX_INDEXED_COMMITS = 4_000_000;

/** The indexes of the segments that are being read. */
export class IndexStore {
  readonly #files: SegmentFiles;
  readonly #caches: Caches;
  readonly #layout: Layout;
  readonly #logger: Logger;
  /** Least recently used first. */
  readonly #loaded = new Map<Segment, Promise<SegmentIndex>>();
  #commits = 0;

  constructor(files: SegmentFiles, caches: Caches, layout: Layout, logger: Logger) {
    this.#files = files;
    this.#caches = caches;
    this.#layout = layout;
    this.#logger = logger;
  }

  /** The index of a pinned segment. */
  of(segment: Segment): SegmentIndex | Promise<SegmentIndex> {
    // The active one has it at hand, and so has one that was just recovered.
    if (segment.index !== undefined) return segment.index;
    const known = this.#loaded.get(segment);
    if (known !== undefined) {
      this.#loaded.delete(segment);
      this.#loaded.set(segment, known);
      return known;
    }
    const loading = this.#load(segment);
    this.#loaded.set(segment, loading);
    loading.then(
      (index) => this.#count(index.commits),
      () => this.#loaded.delete(segment),
    );
    return loading;
  }

  /** Moves the index of a segment that is no longer written to among those that may be let go. */
  release(segment: Segment): void {
    const { index } = segment;
    if (index === undefined) return;
    segment.index = undefined;
    this.#loaded.set(segment, Promise.resolve(index));
    this.#count(index.commits);
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

  #count(commits: number): void {
    this.#commits += commits;
    for (const [segment, loading] of this.#loaded) {
      if (this.#commits <= MAX_INDEXED_COMMITS || this.#loaded.size === 1) return;
      this.#loaded.delete(segment);
      loading.then(
        (index) => {
          this.#commits -= index.commits;
        },
        () => {},
      );
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
