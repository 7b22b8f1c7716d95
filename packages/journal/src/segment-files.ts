import type { FileSystem, ReadableFile } from './file-system.ts';
import type { Layout } from './layout.ts';
import type { Segment } from './segment.ts';

const MAX_OPEN_FILES = 32;

/**
 * The segments that are open for reading. A segment that retention is done with is removed when its last reader is done, and
 * never before an older one: what is left on the disk has no hole, whenever the process ends.
 */
export class SegmentFiles {
  readonly #fs: FileSystem;
  readonly #layout: Layout;
  /** By the first sequence, least recently used first. */
  readonly #open = new Map<number, ReadableFile>();
  /** Those to be removed, oldest first. */
  readonly #doomed: number[] = [];
  readonly #remove: (first: number) => boolean;
  readonly #pins = new Map<number, number>();
  #state: 'open' | 'closed' = 'open';

  /** `remove` answers whether the segment is gone. One that is not is tried again with the next. */
  constructor(fs: FileSystem, layout: Layout, remove: (first: number) => boolean) {
    this.#fs = fs;
    this.#layout = layout;
    this.#remove = remove;
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
      if (first === this.#doomed[0]) this.#removeDoomed();
    }
  }

  /** The file of a pinned segment. */
  file({ first }: Segment): ReadableFile {
    const file = this.#open.get(first) ?? this.#fs.openForReading(this.#layout.segment(first));
    this.#open.delete(first);
    this.#open.set(first, file);
    return file;
  }

  /** Removes a segment once nobody reads it, nor an older one that is to be removed. */
  removeWhenUnread(first: number): void {
    this.#doomed.push(first);
    this.#removeDoomed();
  }

  /** Closes what nobody reads, and the rest when it is read. What is still to be removed is left to the next opening. */
  close(): void {
    this.#state = 'closed';
    this.#doomed.length = 0;
    this.#evict();
  }

  #removeDoomed(): void {
    for (let [first] = this.#doomed; first !== undefined; [first] = this.#doomed) {
      if (this.#pins.has(first)) return;
      this.#open.get(first)?.close();
      this.#open.delete(first);
      if (!this.#remove(first)) return;
      this.#doomed.shift();
    }
  }

  #evict(): void {
    const most = this.#state === 'open' ? MAX_OPEN_FILES : 0;
    for (const [first, file] of this.#open) {
      if (this.#open.size <= most) return;
      if (this.#pins.has(first)) continue;
      this.#open.delete(first);
      file.close();
    }
  }
}
