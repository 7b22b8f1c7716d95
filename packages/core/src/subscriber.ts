import type { Loss } from './broker.ts';
import type { Pages, SlotPage } from './pages.ts';
import type { Position } from './position.ts';
import type { Ring } from './ring.ts';
import { Run } from './run.ts';
import type { CommitSlot, EntrySlot } from './slot.ts';
import type { Tail, TailMember, TailOptions } from './tail.ts';

/** The news, in its place between entries, that entries are lost. */
export class Gap {
  readonly loss: Loss;

  constructor(loss: Loss) {
    this.loss = loss;
  }
}

type Place =
  /** Reading the ring, from this seq. */
  | { readonly at: 'ring'; seq: number }
  /** Reading a page of the log, from this commit of it. */
  | { readonly at: 'page'; readonly commits: readonly CommitSlot[]; next: number }
  /** Neither has what comes next: the log must be asked. */
  | { readonly at: 'log' }
  /** The log's tip lies past the ring's: the tail is about to come by. */
  | { readonly at: 'tip' }
  | { readonly at: 'gap'; readonly loss: Loss };

/**
 * One running subscription on a tail: a cursor, no queue. It reads the ring where that covers the cursor and pages of the
 * log where it does not; the hand-over between them is {@link Ring.seqAfter}, which proves that no commit lies between.
 */
export class Subscriber implements TailMember {
  readonly #tail: Tail;
  readonly #pages: Pages;
  readonly #topic: string;
  readonly #onOutage: (state: 'outage' | 'live') => void;
  #ring!: Ring;
  #cursor!: Position;
  #place: Place = { at: 'log' };
  /** What {@link take} is in the middle of. */
  #run: Run | undefined;
  #index = 0;
  #failure: { readonly error: unknown } | undefined;
  #wakeUp: (() => void) | undefined;
  /** Called at every wake-up, by whom pushes rather than waits. */
  onWake: (() => void) | undefined;

  constructor(
    tail: Tail,
    pages: Pages,
    options: TailOptions,
    onOutage: (state: 'outage' | 'live') => void,
  ) {
    this.#tail = tail;
    this.#pages = pages;
    this.#topic = tail.topic;
    this.#onOutage = onOutage;
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

  /** Whether the live read is broken now. */
  get inOutage(): boolean {
    return this.#tail.inOutage;
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
    this.#place = seq === undefined ? { at: 'log' } : { at: 'ring', seq };
  }

  /** Goes on from a position that somebody claims, once the ring or the log has proved it. Answers the loss if there is one. */
  async resume(position: Position | 'earliest'): Promise<Loss | undefined> {
    if (position !== 'earliest') {
      this.startAt(position);
      if (this.#place.at === 'ring') return undefined;
    }
    const page = await this.#pages.read(this.#topic, position);
    if (page.verdict !== 'ok') return page.verdict;
    this.#cursor = page.from;
    this.#enterPage(page);
    return undefined;
  }

  /** Takes the next entry, or undefined where {@link wait} must be asked first. */
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

  /** Resolves when {@link take} is worth asking again. Rejects when the tail is over and all that it had was taken. */
  async wait(): Promise<void> {
    if (this.#place.at === 'log') {
      const page = await this.#pages.read(this.#topic, this.#cursor);
      if (page.verdict === 'ok') this.#enterPage(page);
      // The cursor was good once; a log that ends before it was rolled back.
      else this.#place = { at: 'gap', loss: page.verdict === 'ahead' ? 'forked' : page.verdict };
      return;
    }
    if (this.#failure !== undefined) throw this.#failure.error;
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
    });
  }

  /** Whether everything that the ring holds was taken. */
  get isAtTip(): boolean {
    return this.#place.at === 'ring' && this.#place.seq === this.#ring.end;
  }

  /** Whether {@link wait} would wait for the tail, which will call `onWake`; otherwise it has work to do. */
  isWaiting(): boolean {
    return this.#place.at !== 'log' && this.#failure === undefined;
  }

  /** Leaves the tail and settles a pending {@link wait}. Idempotent. */
  close(): void {
    this.#tail.leave(this);
    this.wake();
  }

  wake(): void {
    if (this.#place.at === 'tip') this.startAt(this.#cursor);
    const wakeUp = this.#wakeUp;
    this.#wakeUp = undefined;
    wakeUp?.();
    this.onWake?.();
  }

  outage(state: 'outage' | 'live'): void {
    this.#onOutage(state);
    this.wake();
  }

  fail(error: unknown): void {
    this.#failure = { error };
    this.wake();
  }

  #enterPage(page: SlotPage & { verdict: 'ok' }): void {
    if (page.commits.length > 0) {
      this.#place = { at: 'page', commits: page.commits, next: 0 };
      return;
    }
    this.startAt(this.#cursor);
    // The log has nothing after the cursor, and the tail has not come so far yet (or is about to find out that the log
    // it follows is gone): asking the log again would answer the same.
    if (this.#place.at === 'log') this.#place = { at: 'tip' };
  }

  #next(): Run | Gap | undefined {
    for (;;) {
      const place = this.#place;
      switch (place.at) {
        case 'ring': {
          if (place.seq === this.#ring.end) return undefined;
          if (place.seq < this.#ring.start) {
            this.#lagged();
            break;
          }
          const item = this.#ring.at(place.seq);
          if (item.kind === 'gap') return this.#gap(item.loss);
          const run = this.#ring.run(place.seq);
          place.seq += run.commits;
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
    this.#place = { at: 'log' };
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
