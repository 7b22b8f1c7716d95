import type { BrokerLog, Loss } from './broker.ts';
import type { Clock } from './clock.ts';
import type { Position } from './position.ts';
import { type RetryPolicy, retrying } from './retry.ts';
import { type CommitSlot, commitSlot } from './slot.ts';

/** Commits asked for in one read of the log. */
const PAGE_COMMITS = 1024;

/** How long a page that was read may wait for others who need the same one, in milliseconds. */
const KEEP_MS = 2_000;

/** How often that starts again, for a page that was asked for meanwhile: a large herd takes longer than once. */
const KEEP_TIMES = 5;

/** Pages kept at most. A broker bounds the bytes of one. */
const KEEP_PAGES = 16;

/** While more are kept, none is read ahead of need: it would be dropped before it is used. */
const READ_AHEAD_PAGES = 8;

/** A page of the log, its entries shared by all who read it. */
export type SlotPage =
  | {
      readonly verdict: 'ok';
      readonly from: Position;
      readonly commits: readonly CommitSlot[];
      readonly atTip: boolean;
    }
  | { readonly verdict: Loss };

interface Kept {
  readonly page: Promise<SlotPage>;
  /** Whether somebody has asked for it since this was last looked at. */
  asked: boolean;
  /** Takes back the look at it: the wait for that would hold the page. */
  cancel: () => void;
}

/**
 * Reads the log for subscribers that the ring cannot serve. A herd that lost the same entries reads each page once: reads
 * of the same place are joined while under way and kept for a moment after. A kept page stays true: it is a run of
 * commits that followed that place without a hole.
 */
export class Pages {
  readonly #log: BrokerLog;
  readonly #policy: RetryPolicy;
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  readonly #never = new AbortController().signal;

  constructor(log: BrokerLog, policy: RetryPolicy) {
    this.#log = log;
    this.#policy = policy;
    this.#clock = policy.clock;
  }

  /**
   * Reads what follows a position, or the oldest that is retained, and has what follows that read meanwhile. Rejects after
   * the policy's tries.
   */
  read(topic: string, from: Position | 'earliest'): Promise<SlotPage> {
    // What is oldest is decided by each read for itself: one under way may have been answered before a trim.
    const reading = from === 'earliest' ? this.#read(topic, from) : this.#joined(topic, from);
    reading.then((page) => this.#readAhead(topic, page), ignore);
    return reading;
  }

  #joined(topic: string, from: Position): Promise<SlotPage> {
    const key = `${topic}\n${from.epoch} ${from.id} ${from.ordinal}`;
    const known = this.#kept.get(key);
    if (known !== undefined) {
      known.asked = true;
      return known.page;
    }
    const kept: Kept = { page: this.#read(topic, from), asked: false, cancel: () => {} };
    this.#kept.set(key, kept);
    kept.page.then(
      (page) => {
        // A refusal may mend, and an empty page is old at once: only their joint reading is shared.
        if (page.verdict !== 'ok' || page.commits.length === 0) return this.#forget(key, kept);
        this.#keep(key, kept, KEEP_TIMES);
        if (this.#kept.size > KEEP_PAGES) {
          const [oldest] = this.#kept;
          if (oldest !== undefined) this.#forget(...oldest);
        }
      },
      () => this.#forget(key, kept),
    );
    return kept.page;
  }

  #keep(key: string, kept: Kept, times: number): void {
    kept.asked = false;
    kept.cancel = this.#clock.after(KEEP_MS, () => {
      if (kept.asked && times > 1 && this.#kept.get(key) === kept) this.#keep(key, kept, times - 1);
      else this.#forget(key, kept);
    });
  }

  #forget(key: string, kept: Kept): void {
    kept.cancel();
    if (this.#kept.get(key) === kept) this.#kept.delete(key);
  }

  /** Has the log read while the page before is encoded and sent. */
  #readAhead(topic: string, page: SlotPage): void {
    if (page.verdict !== 'ok' || page.atTip || this.#kept.size > READ_AHEAD_PAGES) return;
    const last = page.commits.at(-1);
    if (last !== undefined) this.#joined(topic, last.commit.position).catch(ignore);
  }

  async #read(topic: string, from: Position | 'earliest'): Promise<SlotPage> {
    const page = await retrying(
      () => this.#log.page(topic, from, PAGE_COMMITS),
      this.#policy,
      this.#never,
    );
    this.#log.observer.meter.count('brokerfeed.pages.read', 1);
    if (page.verdict !== 'ok') return { verdict: page.verdict };
    this.#log.observer.meter.record('brokerfeed.pages.commits', page.commits.length);
    const commits = page.commits.map((commit) => commitSlot(topic, commit));
    return { verdict: 'ok', from: page.from, commits, atTip: page.atTip };
  }
}

function ignore(): void {}
