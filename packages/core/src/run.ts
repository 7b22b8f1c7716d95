import { Memoized } from './memoized.ts';
import type { Position } from './position.ts';
import type { CommitSlot, EntrySlot } from './slot.ts';

/** Entries in one run at most, unless a single commit has more. */
const MAX_RUN_ENTRIES = 256;

/** Characters of values in one run at most, unless a single commit has more. */
const MAX_RUN_CHARACTERS = 256 * 1024;

/** Whole commits that follow one another, shared by all who read from the same place. */
export class Run extends Memoized {
  readonly commits: number;
  readonly slots: readonly EntrySlot[];
  /** Where a reader is after it. */
  readonly end: Position;
  #rests: Map<number, Run> | undefined;

  private constructor(commits: number, slots: readonly EntrySlot[], end: Position) {
    super();
    this.commits = commits;
    this.slots = slots;
    this.end = end;
  }

  /** Gathers a run from `commitAt(0)` on, until that answers undefined or the run is long enough. At least one commit. */
  static gather(commitAt: (index: number) => CommitSlot | undefined): Run {
    const slots: EntrySlot[] = [];
    let characters = 0;
    let commits = 0;
    let last: CommitSlot | undefined;
    for (let next = commitAt(0); next !== undefined; next = commitAt(commits)) {
      for (const slot of next.entries) {
        slots.push(slot);
        characters += slot.value.length;
      }
      last = next;
      commits += 1;
      if (slots.length >= MAX_RUN_ENTRIES || characters >= MAX_RUN_CHARACTERS) break;
    }
    if (last === undefined) throw new RangeError('a run has at least one commit');
    return new Run(commits, slots, last.commit.position);
  }

  /** Answers what is left of it from an entry on: the same run for all who ask. */
  from(index: number): Run {
    this.#rests ??= new Map();
    let rest = this.#rests.get(index);
    if (rest === undefined) {
      rest = new Run(this.commits, this.slots.slice(index), this.end);
      this.#rests.set(index, rest);
    }
    return rest;
  }
}
