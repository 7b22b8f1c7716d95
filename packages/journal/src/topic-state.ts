import type { Bounds, Position } from '@brokerfeed/core';
import type { Segment } from './segment.ts';
import type { AgeMark } from './topic-retention.ts';

/** Where a topic's commits are: in which segment, from which ordinal on. */
export interface TopicRun {
  readonly segment: Segment;
  readonly first: number;
}

/** One incarnation of one topic: its bounds, and which segments hold it. */
export class TopicState {
  readonly name: string;
  readonly epoch: string;
  /** The segments that hold retained commits of it, oldest first; and its newest commit, retained or not. */
  readonly runs: TopicRun[] = [];
  /** The newest ordinal that is written and visible. */
  last = 0;
  /** The newest ordinal that was given out, to a commit which may be still on its way to the disk. */
  planned = 0;
  /** The newest ordinal that is removed, and the boot that wrote it. */
  floor = 0;
  floorBoot = 0;
  /** The segment that holds the record which carries this topic on, where no commit of it is retained; else 0. */
  home = 0;
  /** In order. Undefined until an append asks for an age. */
  ageMarks: AgeMark[] | undefined;
  #bounds: Bounds | undefined;

  constructor(name: string, epoch: string) {
    this.name = name;
    this.epoch = epoch;
  }

  /** The position after a commit that is retained, or the newest removed one. For others the boot must be given. */
  position(ordinal: number, boot: number = this.bootOf(ordinal)): Position {
    const id = ordinal === 0 ? '0' : `${ordinal}-${boot}`;
    return Object.freeze({ epoch: this.epoch, id, ordinal });
  }

  bounds(): Bounds {
    this.#bounds ??= Object.freeze({
      first: this.position(this.floor),
      last: this.position(this.last),
    });
    return this.#bounds;
  }

  /** The boot that wrote a commit: 0 before the first one. */
  bootOf(ordinal: number): number {
    if (ordinal === this.floor) return this.floorBoot;
    return this.runs[this.runOf(ordinal)]?.segment.boot ?? 0;
  }

  /** Finds the run that holds a commit. The newest is looked at first: most readers are near the end. */
  runOf(ordinal: number): number {
    let low = 0;
    let high = this.runs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.runs[middle] as TopicRun).first <= ordinal) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Takes in the next commit. */
  extend(segment: Segment, ordinal: number): void {
    if (this.runs.at(-1)?.segment !== segment) this.runs.push({ segment, first: ordinal });
    this.last = ordinal;
    if (this.planned < ordinal) this.planned = ordinal;
    this.home = 0;
    this.#bounds = undefined;
  }

  /** Removes commits up to an ordinal; the files stay. */
  trim(floor: number): void {
    const to = Math.min(floor, this.last);
    if (to <= this.floor) return;
    this.floorBoot = this.bootOf(to);
    this.floor = to;
    const kept = this.runOf(to + 1);
    if (kept > 0) this.runs.splice(0, kept);
    this.#bounds = undefined;
  }

  /** Lets go of the segments before one. */
  retire(firstKept: number): void {
    const next = this.runs.find(({ segment }) => segment.first >= firstKept);
    if (next === this.runs[0]) return;
    this.trim(next === undefined ? this.last : next.first - 1);
    this.runs.splice(0, next === undefined ? this.runs.length : this.runs.indexOf(next));
  }

  /** Takes the state that a record or a checkpoint states. */
  restore(state: { floor: number; floorBoot: number; last: number; home: number }): void {
    this.floor = state.floor;
    this.floorBoot = state.floorBoot;
    this.last = state.last;
    this.planned = state.last;
    this.home = state.home;
    this.#bounds = undefined;
  }
}
