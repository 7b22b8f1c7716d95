import type { Loss } from '@brokerfeed/core';

/** Names an entry by what the test wrote, not by what the feed says: the incarnation of the topic, and the two counts. */
export interface Address {
  readonly incarnation: number;
  /** Counted from 1, as ordinals are. */
  readonly commit: number;
  readonly index: number;
}

interface Incarnation {
  /** Entries of each commit, oldest first; trimmed ones too. */
  readonly sizes: number[];
  /** How many of the oldest commits are gone. */
  trimmed: number;
}

/** What a topic went through: plain arrays, one for each incarnation. It knows nothing of tails, rings, pages or tokens. */
export class FeedModel {
  readonly #incarnations: Incarnation[] = [{ sizes: [], trimmed: 0 }];

  get incarnation(): number {
    return this.#incarnations.length - 1;
  }

  /** Commits appended to the current incarnation. */
  get tip(): number {
    return this.#of(this.incarnation).sizes.length;
  }

  /** Appends a commit, and answers the values to write: each names its own address. */
  append(size: number): string[] {
    const { incarnation } = this;
    const commit = this.#of(incarnation).sizes.push(size);
    return Array.from({ length: size }, (_, index) =>
      JSON.stringify({ incarnation, commit, index } satisfies Address),
    );
  }

  trim(keep: number): void {
    const current = this.#of(this.incarnation);
    current.trimmed = Math.max(current.trimmed, current.sizes.length - keep);
  }

  drop(): void {
    this.#incarnations.push({ sizes: [], trimmed: 0 });
  }

  trimmed(incarnation: number): number {
    return this.#of(incarnation).trimmed;
  }

  /** The address that comes after an entry. */
  after(entry: Address): Address {
    return this.#isLast(entry)
      ? { ...entry, commit: entry.commit + 1, index: 0 }
      : { ...entry, index: entry.index + 1 };
  }

  /** The first entry that a client gets which resumes after this one: the next commit's, or its own commit's. */
  resumedAfter(entry: Address): Address {
    return this.#isLast(entry) ? this.after(entry) : { ...entry, index: 0 };
  }

  /** Why a client that is to get the commit of this address next cannot have it; undefined where it can. */
  lossBefore(next: Address): Loss | undefined {
    if (next.incarnation < this.incarnation) return 'epoch';
    return next.commit <= this.trimmed(next.incarnation) ? 'trimmed' : undefined;
  }

  #isLast({ incarnation, commit, index }: Address): boolean {
    const size = this.#of(incarnation).sizes[commit - 1];
    if (size === undefined) throw new Error(`commit ${commit} was never appended`);
    return index === size - 1;
  }

  #of(incarnation: number): Incarnation {
    const found = this.#incarnations[incarnation];
    if (found === undefined) throw new Error(`there is no incarnation ${incarnation}`);
    return found;
  }
}
