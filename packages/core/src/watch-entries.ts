import type { BrokerLog } from './broker.ts';
import { asBrokerError } from './retry.ts';
import type { Ring } from './ring.ts';
import type { CommitSlot } from './slot.ts';
import type { Tail, TailMember, TailOptions } from './tail.ts';
import { tailsOf } from './tails.ts';
import { watchedEntry } from './watch-event.ts';
import type { WatchQueue } from './watch-queue.ts';

/** Brings what a topic's tail reads into the queue of a watch. Unlike a feed, it never goes back to the log. */
export class WatchEntries implements TailMember {
  readonly #queue: WatchQueue;
  readonly #tail: Tail;
  #ring: Ring | undefined;
  #seq = 0;
  #pushed = 0;

  /** Joins the tail of the topic, started if there is none. */
  constructor(log: BrokerLog, topic: string, options: TailOptions, queue: WatchQueue) {
    this.#queue = queue;
    this.#tail = tailsOf(log).tail(topic, options);
    this.#tail.join(this, options);
  }

  /**
   * Resolves once the live read has a position: what was appended before it can be read in the log, what is appended
   * after it comes into the queue.
   */
  async stands(): Promise<void> {
    const ring = await this.#tail.ring;
    this.#ring = ring;
    this.#seq = ring.end;
    this.#pushed = ring.pushed;
  }

  leave(): void {
    this.#tail.leave(this);
  }

  wake(): void {
    const ring = this.#ring;
    if (ring === undefined) return;
    const from = Math.max(this.#seq, ring.start);
    let missed = ring.pushed - this.#pushed;
    for (let seq = from; seq < ring.end; seq += 1) {
      const item = ring.at(seq);
      if (item.kind === 'commit') missed -= item.slot.entries.length;
    }
    // A batch larger than the ring: its first commits have left it already.
    if (missed > 0) this.#queue.lag(missed);
    for (let seq = from; seq < ring.end; seq += 1) {
      const item = ring.at(seq);
      if (item.kind === 'commit') this.#push(item.slot);
      // The tail lost its own place: from here on it reads another stretch of the log, or another log.
      else this.#queue.lag(undefined);
    }
    this.#seq = ring.end;
    this.#pushed = ring.pushed;
  }

  fail(error: unknown): void {
    this.#queue.end(asBrokerError(error));
  }

  #push({ commit, entries }: CommitSlot): void {
    entries.forEach((entry, index) => {
      if (commit.entries[index]?.unreadable === undefined) this.#queue.push(watchedEntry(entry));
    });
  }
}
