import type { Loss } from './broker.ts';
import { type Position, samePosition } from './position.ts';
import { Run } from './run.ts';
import type { CommitSlot } from './slot.ts';

/** What a ring holds: commits, and the places where the log lost some. */
export type RingItem =
  | { readonly kind: 'commit'; readonly slot: CommitSlot }
  | { readonly kind: 'gap'; readonly loss: Loss };

/**
 * The newest commits of a topic, numbered through by `seq` for the life of a tail. A reader holds a seq, so that its cost
 * does not depend on how far it is behind; one whose seq has left the ring goes back to the log.
 */
export class Ring {
  /** The place after the newest item. */
  tip: Position;
  /** How many entries to keep; a commit is dropped whole, and the newest is kept whatever its size. */
  highWaterMark: number;
  /** The items from `#head` on; those before it are dropped, and cut off in bulk. */
  #items: (RingItem | undefined)[] = [];
  #head = 0;
  #start = 0;
  #entries = 0;
  #pushed = 0;
  /** The seq of the first commit after the newest gap: from there on ordinals are dense. */
  #denseFrom = 0;
  /** Runs that were asked for since the ring changed, by their first seq. Readers that keep up all share one. */
  readonly #runs = new Map<number, Run>();

  constructor(tip: Position, highWaterMark: number) {
    this.tip = tip;
    this.highWaterMark = highWaterMark;
  }

  /** The seq of the oldest item kept. */
  get start(): number {
    return this.#start;
  }

  /** The seq that the next item will have. */
  get end(): number {
    return this.#start + this.#items.length - this.#head;
  }

  /** How many entries it was ever given: what is missing between two looks at it can be counted. */
  get pushed(): number {
    return this.#pushed;
  }

  push(slot: CommitSlot): void {
    this.#runs.clear();
    this.#items.push({ kind: 'commit', slot });
    this.#entries += slot.entries.length;
    this.#pushed += slot.entries.length;
    this.tip = slot.commit.position;
    this.#trim();
  }

  /** Marks a loss. Whoever reads up to it is told there; what follows starts at `tip`. */
  pushGap(loss: Loss, tip: Position): void {
    this.#runs.clear();
    this.#items.push({ kind: 'gap', loss });
    // Counted as an entry: a topic that is deleted again and again must not fill the memory.
    this.#entries += 1;
    this.tip = tip;
    this.#denseFrom = this.end;
    this.#trim();
  }

  /** Answers the item at a seq from `start` to before `end`. */
  at(seq: number): RingItem {
    return this.#items[seq - this.#start + this.#head] as RingItem;
  }

  /** Answers the run of commits that starts at a seq which holds one. */
  run(seq: number): Run {
    let run = this.#runs.get(seq);
    if (run === undefined) {
      run = Run.gather((index) => {
        const item = seq + index < this.end ? this.at(seq + index) : undefined;
        return item?.kind === 'commit' ? item.slot : undefined;
      });
      this.#runs.set(seq, run);
    }
    return run;
  }

  /** Finds where a reader at this position goes on, or undefined where the ring cannot prove that nothing lies between. */
  seqAfter(position: Position): number | undefined {
    if (samePosition(position, this.tip)) return this.end;
    const from = Math.max(this.#start, this.#denseFrom);
    const oldest = from < this.end ? this.at(from) : undefined;
    if (oldest?.kind !== 'commit') return undefined;
    const seq = from + position.ordinal + 1 - oldest.slot.commit.position.ordinal;
    if (seq < from || seq >= this.end) return undefined;
    const next = this.at(seq);
    return next.kind === 'commit' && samePosition(next.slot.commit.previous, position)
      ? seq
      : undefined;
  }

  #trim(): void {
    while (this.#entries > this.highWaterMark && this.#head < this.#items.length - 1) {
      const item = this.#items[this.#head] as RingItem;
      this.#entries -= item.kind === 'commit' ? item.slot.entries.length : 1;
      this.#items[this.#head] = undefined;
      this.#head += 1;
      this.#start += 1;
    }
    // As many moves as drops, on average: cutting one by one would move the whole ring for each commit.
    if (this.#head * 2 > this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
  }
}
