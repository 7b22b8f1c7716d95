import type { Commit, Entry, Headers } from './broker.ts';
import { Memoized } from './memoized.ts';
import type { Position } from './position.ts';

/** An entry as callbacks see it. */
export interface FeedEntry {
  /** The text as it was appended. */
  readonly value: string;
  readonly headers: Headers;
  readonly topic: string;
  /** The ordinal of the commit. */
  readonly generation: number;
  /** The place in the commit, from 0. */
  readonly index: number;
}

/**
 * An entry in this process, shared by all its readers. What feeds derive from it without regard to the subscriber (its
 * token, its prepared value) is kept on it, so that it is made once and goes when the entry goes.
 */
export class EntrySlot extends Memoized implements FeedEntry {
  readonly value: string;
  readonly headers: Headers;
  readonly topic: string;
  readonly generation: number;
  readonly index: number;
  /** Why nobody can be given it, where that is so. */
  readonly unreadable: Error | undefined;
  /** Where a client that has this entry resumes: after its commit if it is the last of it, before it otherwise. */
  readonly resume: Position;
  readonly last: boolean;

  constructor(topic: string, commit: Commit, entry: Entry, index: number) {
    super();
    this.value = entry.value;
    this.headers = entry.headers;
    this.unreadable = entry.unreadable;
    this.topic = topic;
    this.generation = commit.position.ordinal;
    this.index = index;
    this.last = index === commit.entries.length - 1;
    this.resume = this.last ? commit.position : commit.previous;
  }
}

/** A commit in this process. */
export interface CommitSlot {
  readonly commit: Commit;
  readonly entries: readonly EntrySlot[];
}

/** Wraps a commit that was read. */
export function commitSlot(topic: string, commit: Commit): CommitSlot {
  return {
    commit,
    entries: commit.entries.map((entry, index) => new EntrySlot(topic, commit, entry, index)),
  };
}
