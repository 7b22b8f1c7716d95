import type { Bounds, Commit, Position } from '@brokerfeed/core';

/** A log as it was between two losses: it only grew, and lost commits at its start alone. */
interface Branch {
  readonly epoch: string;
  /** By ordinal. Of commits that nobody was told of, none. */
  readonly commits: Map<number, Known>;
  /** The ordinal of the newest known commit, or of the end where that was read. */
  tip: number;
  /** Commits up to this ordinal were seen to be gone. */
  trimmed: number;
}

interface Known {
  readonly id: string;
  readonly name: number;
}

/**
 * What a topic really went through: what appends were acknowledged, and what was read of the log while nothing was appended.
 * It is made of positions alone, and knows nothing of tails, tokens or faults.
 */
export class FaultHistory {
  readonly #branches: Branch[] = [];
  /** Entries of each acknowledged append, by the appender's name for it. */
  readonly #acknowledged = new Map<number, number>();
  #newest: Position | undefined;

  /** Entries that were acknowledged. */
  get acknowledged(): number {
    return [...this.#acknowledged.values()].reduce((sum, size) => sum + size, 0);
  }

  /** How many appends were acknowledged, from a name on. */
  acknowledgedFrom(name: number): number {
    return [...this.#acknowledged.keys()].filter((each) => each >= name).length;
  }

  /**
   * The names of the acknowledged appends from one on that the log holds. Others were rolled back with it or deleted: who
   * stood before them cannot know that they ever were.
   */
  heldFrom(name: number): number[] {
    const held = new Set(
      [...(this.#branches.at(-1)?.commits.values() ?? [])].map((each) => each.name),
    );
    return [...this.#acknowledged.keys()].filter((each) => each >= name && held.has(each));
  }

  /** The position of the newest acknowledged append. */
  get newest(): Position | undefined {
    return this.#newest;
  }

  /** Notes an acknowledged append. To be called in the order of the log: by one appender that does one at a time. */
  acknowledge(name: number, size: number, position: Position): void {
    this.#acknowledged.set(name, size);
    this.#newest = position;
    this.#put(name, position);
  }

  /** Notes what the whole log holds. To be called while nothing is appended. Answers names that it holds twice. */
  read(commits: readonly Commit[], bounds: Bounds, nameOf: (commit: Commit) => number): number[] {
    const names = new Set<number>();
    const twice: number[] = [];
    for (const commit of commits) {
      const name = nameOf(commit);
      if (names.has(name)) twice.push(name);
      names.add(name);
      this.#put(name, commit.position);
    }
    const { first, last } = bounds;
    const branch = this.#branchOf(last.epoch);
    branch.trimmed = Math.max(branch.trimmed, first.ordinal);
    if (last.ordinal < branch.tip) this.#fork(last.ordinal);
    else branch.tip = last.ordinal;
    return twice;
  }

  /** The name of the commit that ends at a position; undefined where nobody was told of it. */
  nameAt({ epoch, ordinal, id }: Position): number | undefined {
    for (const branch of this.#branches) {
      const known = branch.epoch === epoch ? branch.commits.get(ordinal) : undefined;
      if (known?.id === id) return known.name;
    }
    return undefined;
  }

  /** Whether one position may be followed by another with nothing between: false only where it is known not to be. */
  follows(before: Position, after: Position): boolean {
    if (before.epoch !== after.epoch || after.ordinal !== before.ordinal + 1) return false;
    const holding = this.#branches.filter(
      ({ epoch, commits }) => epoch === after.epoch && commits.get(after.ordinal)?.id === after.id,
    );
    const known = holding.flatMap(({ commits }) => commits.get(before.ordinal) ?? []);
    return known.length === 0 || known.some(({ id }) => id === before.id);
  }

  /** Whether a reader at a position really lost what a feed may tell it. */
  lost(at: Position, reason: string): boolean {
    const branch = this.#branches.findLast(({ epoch }) => epoch === at.epoch);
    switch (reason) {
      case 'epoch':
        return this.#branches.at(-1)?.epoch !== at.epoch;
      case 'trimmed':
        return branch !== undefined && branch.trimmed > at.ordinal;
      case 'forked':
      case 'ahead': {
        if (branch === undefined || at.ordinal === 0) return false;
        const known = branch.commits.get(at.ordinal);
        if (known !== undefined) return known.id !== at.id;
        // What was trimmed before it was read cannot be compared.
        return branch.tip < at.ordinal || branch.trimmed >= at.ordinal;
      }
      default:
        return false;
    }
  }

  /** Commits that a reader of one position never saw of the log that holds the other. */
  between(before: Position, after: Position): number {
    if (before.epoch !== after.epoch) return Math.max(1, after.ordinal - 1);
    return Math.max(1, after.ordinal - 1 - before.ordinal);
  }

  #put(name: number, { epoch, ordinal, id }: Position): void {
    let branch = this.#branchOf(epoch);
    const known = branch.commits.get(ordinal);
    if (known !== undefined && known.id !== id) branch = this.#fork(ordinal - 1);
    branch.commits.set(ordinal, { id, name });
    branch.tip = Math.max(branch.tip, ordinal);
  }

  #branchOf(epoch: string): Branch {
    const newest = this.#branches.at(-1);
    if (newest?.epoch === epoch) return newest;
    const branch = { epoch, commits: new Map(), tip: 0, trimmed: 0 };
    this.#branches.push(branch);
    return branch;
  }

  /** The log was rolled back to an ordinal. */
  #fork(tip: number): Branch {
    const before = this.#branches.at(-1) as Branch;
    const commits = new Map([...before.commits].filter(([ordinal]) => ordinal <= tip));
    const branch = { ...before, commits, tip };
    this.#branches.push(branch);
    return branch;
  }
}
