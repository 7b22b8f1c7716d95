import type { Loss } from './broker.ts';
import type { Pages, SlotPage } from './pages.ts';
import type { Position } from './position.ts';
import type { Ring } from './ring.ts';
import { Run } from './run.ts';
import type { CommitSlot, EntrySlot } from './slot.ts';
import type { Tail, TailMember, TailOptions } from './tail.ts';
import type { FeedStanding } from './wire/control.ts';

/** The news, in its place between entries, that entries are lost. */
export class Gap {
  readonly loss: Loss;

  constructor(loss: Loss) {
    this.loss = loss;
  }
}

/** Whoever reads what a subscriber takes. Its methods never throw. */
export interface Wakeable {
  /** There may be more to take, or a failure to be told. */
  woken(): void;
}

type Place =
  /** Reading the ring. */
  | { readonly at: 'ring' }
  /** Reading a page of the log, from this commit of it. */
  | { readonly at: 'page'; readonly commits: readonly CommitSlot[]; next: number }
  /** Neither has what comes next: the log must be asked. */
  | { readonly at: 'log' }
  /** The log's tip lies past the ring's: the tail is about to come by. */
  | { readonly at: 'tip' }
  | { readonly at: 'gap'; readonly loss: Loss };

// Places that hold nothing of their own are one object for all.
const IN_RING: Place = { at: 'ring' };
const IN_LOG: Place = { at: 'log' };
const AT_TIP: Place = { at: 'tip' };

/**
 * One running subscription on a tail: a cursor, no queue. It reads the ring where that covers the cursor and pages of the
 * log where it does not; the hand-over between them is {@link Ring.seqAfter}, which proves that no commit lies between.
 */
export class Subscriber implements TailMember {
  readonly #tail: Tail;
  readonly #pages: Pages;
  #ring!: Ring;
  #cursor!: Position;
  #place: Place = IN_LOG;
  /** What comes next in the ring, while reading that. */
  #seq = 0;
  /** What {@link take} is in the middle of. */
  #run: Run | undefined;
  #index = 0;
  #failure: { readonly error: unknown } | undefined;
  /** Told of every wake-up. */
  reader: Wakeable | undefined;

  constructor(tail: Tail, pages: Pages, options: TailOptions) {
    this.#tail = tail;
    this.#pages = pages;
    tail.join(this, options);
  }

  /** The last position whose commits were all taken whole. */
  get cursor(): Position {
    return this.#cursor;
  }

  /** Where the live read stands now. */
  get tip(): Position {
    return this.#ring.tip;
  }

  /** Waits until the tail has a position. Everything appended from then on can be read. */
  async positioned(): Promise<void> {
    this.#ring = await this.#tail.ring;
  }

  /** Goes on from the live read's place. */
  startLive(): void {
    this.startAt(this.#ring.tip);
  }

  /** Goes on from a position known to be good. */
  startAt(position: Position): void {
    this.#cursor = position;
    this.#run = undefined;
    const seq = this.#ring.seqAfter(position);
    this.#place = seq === undefined ? IN_LOG : IN_RING;
    this.#seq = seq ?? 0;
  }

  /** Goes on from a position that somebody claims, once the ring or the log has proved it. Answers the loss if there is one. */
  async resume(position: Position | 'earliest'): Promise<Loss | undefined> {
    if (position !== 'earliest') {
      this.startAt(position);
      if (this.#place.at === 'ring') return undefined;
    }
    const { end } = this.#ring;
    const page = await this.#pages.read(this.#tail.topic, position);
    if (page.verdict !== 'ok') return page.verdict;
    this.#cursor = page.from;
    this.#enterPage(page, end);
    return undefined;
  }

  /** Takes the next entry, or undefined where it {@link isWaiting} or {@link fetch} must be asked first. */
  take(): EntrySlot | Gap | undefined {
    if (this.#run === undefined) {
      const next = this.#next();
      if (!(next instanceof Run)) return next;
      this.#run = next;
      this.#index = 0;
    }
    const slot = this.#run.slots[this.#index] as EntrySlot;
    this.#index += 1;
    if (this.#index === this.#run.slots.length) this.#run = undefined;
    if (slot.last) this.#cursor = slot.resume;
    return slot;
  }

  /** Takes what is ready up to the end of a commit, in a run that readers at the same place share. */
  takeRun(): Run | Gap | undefined {
    const next = this.#run?.from(this.#index) ?? this.#next();
    this.#run = undefined;
    if (next instanceof Run) this.#cursor = next.end;
    return next;
  }

  /** Whether all there is was taken: the tail will wake the reader. Otherwise {@link fetch} has work to do. */
  isWaiting(): boolean {
    return this.#place.at !== 'log' && this.#failure === undefined;
  }

  /** Whether everything that the ring holds was taken. */
  get isAtTip(): boolean {
    return this.#place.at === 'ring' && this.#seq === this.#ring.end && this.#run === undefined;
  }

  /**
   * Tells how it stands, given what was told before. One that is live stays so while it reads the ring, however far it is
   * behind there; where the log or the tail is to say what comes next, or no live read stands yet, nothing new is known.
   */
  standing(before: FeedStanding | undefined): FeedStanding | undefined {
    if (this.#failure !== undefined) return before;
    if (this.#tail.inOutage) return 'outage';
    if (this.#tail.isBehind) return 'catching-up';
    const place = this.#place;
    switch (place.at) {
      case 'ring':
        if (before !== 'live' && !this.isAtTip) return 'catching-up';
        return this.#tail.stands ? 'live' : before;
      case 'page':
        return 'catching-up';
      case 'log':
      case 'tip':
      case 'gap':
        return before;
      default:
        return place satisfies never;
    }
  }

  /** Asks the log for what comes next. Rejects when the tail is over and all that it had was taken. */
  async fetch(): Promise<void> {
    if (this.#place.at !== 'log') throw this.#failure?.error;
    const { end } = this.#ring;
    const page = await this.#pages.read(this.#tail.topic, this.#cursor);
    if (page.verdict === 'ok') this.#enterPage(page, end);
    // The cursor was good once; a log that ends before it was rolled back.
    else this.#place = { at: 'gap', loss: page.verdict === 'ahead' ? 'forked' : page.verdict };
  }

  /** Leaves the tail. Idempotent. */
  close(): void {
    this.#tail.leave(this);
  }

  wake(): void {
    if (this.#place.at === 'tip') this.startAt(this.#cursor);
    this.reader?.woken();
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.wake();
  }

  /** `end` is where the ring ended when the page was asked for. */
  #enterPage(page: SlotPage & { verdict: 'ok' }, end: number): void {
    if (page.commits.length > 0) {
      this.#place = { at: 'page', commits: page.commits, next: 0 };
      return;
    }
    this.startAt(this.#cursor);
    // The log had nothing after the cursor, and the tail has not come so far yet (or is about to find out that the log
    // it follows is gone): asking the log again would answer the same.
    if (this.#place.at === 'log' && !this.#isPassed(end)) this.#place = AT_TIP;
  }

  /** Whether the tail may have read on from the cursor, by more than the ring holds, since the log was asked. */
  #isPassed(end: number): boolean {
    const { epoch, ordinal } = this.#ring.tip;
    if (epoch !== this.#cursor.epoch) return this.#ring.end !== end;
    return ordinal > this.#cursor.ordinal;
  }

  #next(): Run | Gap | undefined {
    for (;;) {
      const place = this.#place;
      switch (place.at) {
        case 'ring': {
          if (this.#seq === this.#ring.end) return undefined;
          if (this.#seq < this.#ring.start) {
            this.#lagged();
            break;
          }
          const item = this.#ring.at(this.#seq);
          if (item.kind === 'gap') return this.#gap(item.loss);
          const run = this.#ring.run(this.#seq);
          this.#seq += run.commits;
          return run;
        }
        case 'page': {
          if (place.next === place.commits.length) {
            this.startAt(this.#cursor);
            break;
          }
          const run = runOf(place.commits, place.next);
          place.next += run.commits;
          return run;
        }
        case 'gap':
          return this.#gap(place.loss);
        case 'log':
        case 'tip':
          return undefined;
        default:
          return place satisfies never;
      }
    }
  }

  #gap(loss: Loss): Gap {
    this.#place = { at: 'gap', loss };
    return new Gap(loss);
  }

  #lagged(): void {
    this.#place = IN_LOG;
    this.#tail.lagged();
  }
}

/** Runs of pages, by page and first commit: a herd that shares pages shares these. */
const pageRuns = new WeakMap<readonly CommitSlot[], Map<number, Run>>();

function runOf(commits: readonly CommitSlot[], from: number): Run {
  let runs = pageRuns.get(commits);
  if (runs === undefined) {
    runs = new Map();
    pageRuns.set(commits, runs);
  }
  let run = runs.get(from);
  if (run === undefined) {
    run = Run.gather((index) => commits[from + index]);
    runs.set(from, run);
  }
  return run;
}
