import type { Commit, Loss, Position, Sink } from '@brokerfeed/core';
import type { JournalState } from './journal-state.ts';
import { makeCommit } from './page-reader.ts';
import { isCommit, type JournalRecord } from './record.ts';
import type { TopicState } from './topic-state.ts';

interface LiveRead {
  readonly sink: Sink;
  end(loss: Loss | undefined): void;
}

/** The reads that stand at the tip of their topic and are handed what becomes visible. */
export class LiveReads {
  readonly #state: JournalState;
  readonly #reads = new Map<TopicState, Set<LiveRead>>();

  constructor(state: JournalState) {
    this.#state = state;
  }

  /**
   * Hands over the commits of a topic from its tip on, until one of the signals aborts (undefined) or the topic is dropped
   * (`epoch`). To be called in the same turn that found the reader at the tip.
   */
  join(topic: TopicState, sink: Sink, ...ends: readonly AbortSignal[]): Promise<Loss | undefined> {
    return new Promise((resolve) => {
      const leave = (): void => read.end(undefined);
      const read: LiveRead = {
        sink,
        end: (loss) => {
          for (const end of ends) end.removeEventListener('abort', leave);
          this.#leave(topic, read);
          resolve(loss);
        },
      };
      for (const end of ends) end.addEventListener('abort', leave);
      const reads = this.#reads.get(topic);
      if (reads !== undefined) reads.add(read);
      else {
        this.#reads.set(topic, new Set([read]));
        this.#state.keep(topic.name);
      }
    });
  }

  /** Hands out what has become visible. */
  deliver(records: readonly JournalRecord[]): void {
    if (this.#reads.size === 0) return;
    const fresh = new Map<TopicState, Commit[]>();
    for (const record of records) {
      if (isCommit(record)) this.#collect(record.commits, fresh);
      else if ('drop' in record) this.#endDropped(record.drop);
    }
    for (const [topic, commits] of fresh) {
      const reads = this.#reads.get(topic);
      if (reads === undefined) continue;
      // A sink may abort other reads, or start new ones: those are at the tip already.
      for (const read of [...reads]) if (reads.has(read)) read.sink.commits(commits);
    }
  }

  #collect(
    written: Extract<JournalRecord, { commits: unknown }>['commits'],
    fresh: Map<TopicState, Commit[]>,
  ): void {
    for (const commit of written) {
      const topic = this.#state.topic(commit.topic);
      if (!this.#reads.has(topic)) continue;
      const commits = fresh.get(topic);
      // What came before may be gone with the very write that brought this: then only the commit itself can name it.
      const previous: Position =
        commits?.at(-1)?.position ?? topic.position(commit.ordinal - 1, commit.after);
      const made = makeCommit(previous, topic.position(commit.ordinal), commit);
      if (commits === undefined) fresh.set(topic, [made]);
      else commits.push(made);
    }
  }

  #endDropped(name: string): void {
    for (const [topic, reads] of [...this.#reads]) {
      if (topic.name === name) for (const read of [...reads]) read.end('epoch');
    }
  }

  #leave(topic: TopicState, read: LiveRead): void {
    const reads = this.#reads.get(topic);
    if (!reads?.delete(read) || reads.size > 0) return;
    this.#reads.delete(topic);
    this.#state.unkeep(topic);
  }
}
