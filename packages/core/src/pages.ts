import type { BrokerLog, Loss } from './broker.ts';
import type { Clock } from './clock.ts';
import type { Position } from './position.ts';
import { type RetryPolicy, retrying } from './retry.ts';
import { type CommitSlot, commitSlot } from './slot.ts';

/** Commits asked for in one read of the log. */
const PAGE_COMMITS = 256;

/** How long a page that was read may serve others who need the same one, in milliseconds. */
const KEEP_MS = 2_000;

/** Pages kept at most. A broker bounds the bytes of one. */
const KEEP_PAGES = 64;

/** A page of the log, its entries shared by all who read it. */
export type SlotPage =
  | {
      readonly verdict: 'ok';
      readonly from: Position;
      readonly commits: readonly CommitSlot[];
      readonly atTip: boolean;
    }
  | { readonly verdict: Loss };

/**
 * Reads the log for subscribers that the ring cannot serve. A herd that lost the same entries reads each page once: reads
 * of the same place are joined while under way and kept for a moment after. A kept page stays true: it is a run of
 * commits that followed that place without a hole.
 */
export class Pages {
  readonly #log: BrokerLog;
  readonly #policy: RetryPolicy;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Promise<SlotPage>>();
  readonly #never = new AbortController().signal;

  constructor(log: BrokerLog, policy: RetryPolicy) {
    this.#log = log;
    this.#policy = policy;
    this.#clock = policy.clock;
  }

  /** Reads what follows a position, or the oldest that is retained. Rejects after the policy's tries. */
  read(topic: string, from: Position | 'earliest'): Promise<SlotPage> {
    // What is oldest is decided by each read for itself: one under way may have been answered before a trim.
    if (from === 'earliest') return this.#read(topic, from);
    const key = `${topic}\n${from.epoch} ${from.id} ${from.ordinal}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const reading = this.#read(topic, from);
    this.#kept.set(key, reading);
    const forget = (): void => {
      if (this.#kept.get(key) === reading) this.#kept.delete(key);
    };
    reading.then((page) => {
      // A refusal may mend, and an empty page is old at once: only their joint reading is shared.
      if (page.verdict !== 'ok' || page.commits.length === 0) return forget();
      this.#clock.after(KEEP_MS, forget);
      if (this.#kept.size > KEEP_PAGES) this.#kept.delete(this.#kept.keys().next().value as string);
    }, forget);
    return reading;
  }

  async #read(topic: string, from: Position | 'earliest'): Promise<SlotPage> {
    const page = await retrying(
      () => this.#log.page(topic, from, PAGE_COMMITS),
      this.#policy,
      this.#never,
    );
    this.#log.observer.meter.count('brokerfeed.pages.read', 1);
    if (page.verdict !== 'ok') return { verdict: page.verdict };
    const commits = page.commits.map((commit) => commitSlot(topic, commit));
    return { verdict: 'ok', from: page.from, commits, atTip: page.atTip };
  }
}
