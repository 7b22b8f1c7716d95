import type { CheckedAppend } from '../append-check.ts';
import type { Bounds, Page, Start } from '../broker.ts';
import { Audience } from '../local-announcer.ts';
import type { Position } from '../position.ts';
import type { CheckedTopicAppend } from '../topic-commit.ts';
import { KeyedAppends } from './keyed-appends.ts';
import { type AppendPolicy, TopicLog } from './topic-log.ts';

/**
 * Topics in memory, shared by every broker that is made on them. Each method runs to its end at once, which makes it
 * atomic; promises, checks of arguments and the end of reads are the broker's part.
 */
export class MemoryStore {
  /** Who hears what is announced, on every broker of the store. */
  readonly audience: Audience = new Audience();
  readonly #logs = new Map<string, TopicLog>();
  /** Keys of commits across topics. */
  readonly #keyed = new KeyedAppends<readonly Position[]>();

  /** Writes one commit, or finds the earlier one of its idempotency key, and answers with the position after it. */
  append(topic: string, write: CheckedAppend, policy: AppendPolicy, now: number): Position {
    return this.#log(topic).append(write, policy, now);
  }

  /** Writes one commit to each topic, or finds the earlier ones of their common key, and answers with the positions after them. */
  appendAll(
    writes: readonly CheckedTopicAppend[],
    key: string | undefined,
    policy: AppendPolicy,
    now: number,
  ): readonly Position[] {
    // Readers are told of each at once, but run later: they find all of them.
    const append = (): readonly Position[] =>
      writes.map(({ topic, ...write }) =>
        this.#log(topic).append({ ...write, idempotencyKey: undefined }, policy, now),
      );
    if (key === undefined) return append();
    const values = writes.map(({ topic, entries }) => [topic, entries.map(({ value }) => value)]);
    return this.#keyed.once(key, values, policy.idempotencyWindowMs, now, append);
  }

  /** Reads verdict, bounds and commits. */
  page(topic: string, start: Start, limit: number): Page {
    return this.#log(topic).page(start, limit);
  }

  /** Reads the bounds of a topic. */
  bounds(topic: string): Bounds {
    return this.#log(topic).bounds();
  }

  /** Calls `wake` at every change of the topic as it is now, until it is deleted. Returns what stops it. */
  watch(topic: string, wake: () => void): () => void {
    const { watchers } = this.#log(topic);
    watchers.add(wake);
    return () => watchers.delete(wake);
  }

  /** Removes all but the newest commits of a topic, as retention would. */
  trim(topic: string, keepCommits: number): void {
    this.#log(topic).trim(keepCommits);
  }

  /** Deletes a topic. What is read from it or written to it next belongs to a new incarnation. */
  drop(topic: string): void {
    const log = this.#logs.get(topic);
    this.#logs.delete(topic);
    log?.wake();
  }

  #log(topic: string): TopicLog {
    let log = this.#logs.get(topic);
    if (log === undefined) {
      log = new TopicLog();
      this.#logs.set(topic, log);
    }
    return log;
  }
}

/** Makes an empty store. Brokers that are given the same one are instances of one service. */
export function memoryStore(): MemoryStore {
  return new MemoryStore();
}
