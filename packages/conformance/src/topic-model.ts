import type { Loss, Page, Position } from '@brokerfeed/core';

/** A commit as the model knows it. */
interface ModelCommit {
  readonly position: Position;
  readonly values: readonly string[];
}

/** A position that a reader holds: where it stood, and in which incarnation of the topic. */
export interface HeldPosition {
  readonly position: Position;
  readonly incarnation: number;
}

/** What the model says of a read. */
export type ModelAnswer =
  | { readonly verdict: Loss }
  | { readonly verdict: 'ok'; readonly from: number; readonly commits: readonly ModelCommit[] };

/**
 * A topic as a plain array: every commit ever written to this incarnation, and how many of them are trimmed. It learns
 * names (epoch and ids) from the broker, and knows by itself which commits a read must answer.
 */
export class TopicModel {
  readonly pastEpochs: Set<string> = new Set();
  incarnation = 0;
  trimmed = 0;
  #commits: ModelCommit[] = [];
  /** The place before the first commit, once a reader has seen it. */
  #start: Position | undefined;

  get count(): number {
    return this.#commits.length;
  }

  get epoch(): string | undefined {
    return (this.#start ?? this.#commits[0]?.position)?.epoch;
  }

  append(position: Position, values: readonly string[]): void {
    this.#commits.push({ position, values });
  }

  /** How many entries are not trimmed. */
  get retained(): number {
    return this.#commits.slice(this.trimmed).reduce((sum, { values }) => sum + values.length, 0);
  }

  trim(keepCommits: number): void {
    this.trimmed = Math.max(this.trimmed, this.count - keepCommits);
  }

  drop(): void {
    if (this.epoch !== undefined) this.pastEpochs.add(this.epoch);
    this.incarnation += 1;
    this.trimmed = 0;
    this.#commits = [];
    this.#start = undefined;
  }

  /** Learns the name of the place before the first commit, which no append tells. */
  learn({ bounds }: Page): void {
    if (bounds.first.ordinal === 0) this.#start ??= bounds.first;
  }

  /** The place after so many commits. */
  place(ordinal: number): Position | undefined {
    return ordinal === 0 ? this.#start : this.#commits[ordinal - 1]?.position;
  }

  /** Answers a read of `limit` commits from a place: a held one, or the ordinal of one of this incarnation. */
  read(from: HeldPosition | number, limit: number): ModelAnswer {
    if (typeof from !== 'number' && from.incarnation !== this.incarnation)
      return { verdict: 'epoch' };
    const ordinal = typeof from === 'number' ? from : from.position.ordinal;
    if (ordinal > this.count) return { verdict: 'ahead' };
    if (ordinal < this.trimmed) return { verdict: 'trimmed' };
    return { verdict: 'ok', from: ordinal, commits: this.#commits.slice(ordinal, ordinal + limit) };
  }
}
