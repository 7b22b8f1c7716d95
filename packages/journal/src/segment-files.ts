import type { FileSystem, ReadableFile } from './file-system.ts';
import type { Layout } from './layout.ts';
import type { Segment } from './segment.ts';

const MAX_OPEN_FILES = 32;

/** The segments that are open for reading. A segment that retention is done with is removed when its last reader is done. */
export class SegmentFiles {
  readonly #fs: FileSystem;
  readonly #layout: Layout;
  /** By the first sequence, least recently used first. */
  readonly #open = new Map<number, ReadableFile>();
  readonly #doomed = new Map<number, () => void>();
  readonly #pins = new Map<number, number>();

  constructor(fs: FileSystem, layout: Layout) {
    this.#fs = fs;
    this.#layout = layout;
  }

  /** Keeps a segment's file from being removed. To be undone by `unpin`. */
  pin({ first }: Segment): void {
    this.#pins.set(first, (this.#pins.get(first) ?? 0) + 1);
  }

  unpin({ first }: Segment): void {
    const pins = (this.#pins.get(first) ?? 1) - 1;
    if (pins > 0) this.#pins.set(first, pins);
    else {
      this.#pins.delete(first);
      this.#evict();
      this.#removeDoomed(first);
    }
  }

  /** The file of a pinned segment. */
  file({ first }: Segment): ReadableFile {
    const file = this.#open.get(first) ?? this.#fs.openForReading(this.#layout.segment(first));
    this.#open.delete(first);
    this.#open.set(first, file);
    return file;
  }

  /** Calls `remove` once nobody reads the segment. */
  removeWhenUnread(first: number, remove: () => void): void {
    this.#doomed.set(first, remove);
    if (!this.#pins.has(first)) this.#removeDoomed(first);
  }

  close(): void {
    for (const file of this.#open.values()) file.close();
    this.#open.clear();
    for (const first of [...this.#doomed.keys()]) this.#removeDoomed(first);
  }

  #removeDoomed(first: number): void {
    const remove = this.#doomed.get(first);
    if (remove === undefined) return;
    this.#doomed.delete(first);
    this.#open.get(first)?.close();
    this.#open.delete(first);
    remove();
  }

  #evict(): void {
    for (const [first, file] of this.#open) {
      if (this.#open.size <= MAX_OPEN_FILES) return;
      if (this.#pins.has(first)) continue;
      this.#open.delete(first);
      file.close();
    }
  }
}
