import type { SegmentIndex } from './segment-index.ts';

/** One segment, as the journal knows it without reading it. */
export class Segment {
  /** The sequence of its first record, and its name. */
  readonly first: number;
  /** The opening of the folder that wrote it. */
  readonly boot: number;
  /** The sequence of its newest record. */
  last: number;
  bytes = 0;
  entries = 0;
  firstAt = 0;
  lastAt = 0;
  /** Where its commits start. Always there for the active segment, which adds to it. */
  index: SegmentIndex | undefined;

  constructor(first: number, boot: number) {
    this.first = first;
    this.boot = boot;
    this.last = first - 1;
  }
}
