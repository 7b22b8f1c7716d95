import type { Position } from '@brokerfeed/core';
import type { FaultHistory } from './faults-history.ts';
import type { FaultEvent, FaultValue } from './faults-record.ts';

/** What a run came to. `lost`, `repeated` and `failed` are 0 where the promises hold. */
export interface FaultLedger {
  faults: number;
  /** Entries whose append was acknowledged. */
  acknowledged: number;
  /** Entries that came, over all subscribers. */
  delivered: number;
  /** Times that a subscriber was told of a loss. */
  told: number;
  /** Commits that a subscriber never got and was not told of. */
  lost: number;
  /** Entries that a connection brought twice, or a later one again though they were to be resumed after. */
  repeated: number;
  /** Everything else that should not have come: errors, losses that were told and were none, foreign values. */
  failed: number;
  /** The first of what went wrong, in words. */
  readonly problems: string[];
}

/** Makes an empty ledger. */
export function emptyLedger(): FaultLedger {
  return {
    faults: 0,
    acknowledged: 0,
    delivered: 0,
    told: 0,
    lost: 0,
    repeated: 0,
    failed: 0,
    problems: [],
  };
}

const MAX_PROBLEMS = 20;

/** Holds what one subscriber noticed against what the log really went through. Judges from one quiet moment to the next. */
export class FaultJudge {
  readonly #name: string;
  readonly #history: FaultHistory;
  readonly #ledger: FaultLedger;
  /** The place after the last commit that came whole, or that it was told to go on from. */
  #at: Position | undefined;
  #inside: FaultValue | undefined;
  #connection: 'new' | 'used' = 'new';
  /** Told of a loss by a refusal: any start is good. */
  #afresh = true;
  /** Its newest token lies between a loss and its snapshot. */
  #between = false;
  /** The reasons that it was told since the last judgement. */
  readonly reasons: string[] = [];

  constructor(name: string, history: FaultHistory, ledger: FaultLedger) {
    this.#name = name;
    this.#history = history;
    this.#ledger = ledger;
  }

  /**
   * Judges what came since the last time. The history must know the whole log by now. `tip` is where the log ends, and
   * `names` are the appends acknowledged since the last time that it holds.
   */
  judge(events: readonly FaultEvent[], tip: Position, names: readonly number[]): void {
    this.reasons.length = 0;
    const lostBefore = this.#ledger.lost;
    const got = new Set<number>();
    for (const event of events) {
      if (event.kind === 'entry') got.add(event.value.n);
      this.#see(event);
    }
    const at = this.#at;
    if (
      at === undefined ||
      at.epoch !== tip.epoch ||
      at.ordinal !== tip.ordinal ||
      at.id !== tip.id
    ) {
      const missing =
        at === undefined
          ? tip.ordinal
          : this.#history.between(at, { ...tip, ordinal: tip.ordinal + 1 });
      this.#lost(missing, `ends at ${show(at)}, and the log at ${show(tip)}`);
    } else if (this.reasons.length === 0 && this.#ledger.lost === lostBefore) {
      // By the values alone: tokens may say what they like.
      const missing = names.filter((name) => !got.has(name));
      if (missing.length > 0) this.#lost(missing.length, `never got ${missing.join()}`);
    }
  }

  #see(event: FaultEvent): void {
    switch (event.kind) {
      case 'connected':
        this.#connection = 'new';
        return;
      case 'stands':
        this.#stand(event.at);
        return;
      case 'between':
        this.#between = true;
        return;
      case 'entry':
        this.#entry(event.value, event.resume);
        return;
      case 'snapshot':
        this.#told(event.reason);
        this.#goOn(event.at);
        return;
      case 'refused':
        this.#told(event.reason);
        this.#afresh = true;
        return;
      case 'failed':
        this.#fail(event.what);
        return;
      default:
        event satisfies never;
    }
  }

  #stand(at: Position): void {
    if (!this.#afresh && this.#at !== undefined) {
      if (same(this.#at, at)) return;
      const missed = this.#history.between(this.#at, { ...at, ordinal: at.ordinal + 1 });
      this.#lost(missed, `was moved from ${show(this.#at)} to ${show(at)}`);
    }
    this.#goOn(at);
  }

  #entry(value: FaultValue, resume: Position): void {
    this.#ledger.delivered += 1;
    const isLast = value.index === value.of - 1;
    const inside = this.#inside;
    const again = this.#connection === 'new';
    this.#connection = 'used';
    if (inside !== undefined && !(again && value.index === 0)) {
      if (value.n !== inside.n || value.index !== inside.index + 1) {
        if (value.n === inside.n && value.index <= inside.index) this.#repeat(value);
        else this.#lost(1, `got ${show(value)} inside commit ${show(inside)}`);
      }
    } else if (value.index > 0) {
      this.#lost(1, `got ${show(value)} without its commit's start`);
    } else this.#next(value, resume, isLast);
    this.#inside = isLast ? undefined : value;
    if (!isLast) return;
    const name = this.#history.nameAt(resume);
    if (name !== undefined && name !== value.n)
      this.#fail(`got ${show(value)} at ${show(resume)}, where append ${name} is`);
    this.#at = resume;
  }

  /** The first entry of a commit: does it follow? */
  #next(value: FaultValue, resume: Position, isLast: boolean): void {
    const at = this.#at;
    if (this.#afresh || at === undefined) {
      this.#afresh = false;
      return;
    }
    const follows = isLast ? this.#history.follows(at, resume) : same(at, resume);
    if (follows) return;
    const commit = isLast ? resume.ordinal : resume.ordinal + 1;
    if (
      resume.epoch === at.epoch &&
      commit <= at.ordinal &&
      this.#history.nameAt(resume) === value.n &&
      isLast
    )
      this.#repeat(value);
    else
      this.#lost(
        this.#history.between(at, { ...resume, ordinal: commit }),
        `got ${show(value)} at ${show(resume)} after ${show(at)}`,
      );
  }

  #goOn(at: Position): void {
    this.#at = at;
    this.#inside = undefined;
    this.#afresh = false;
    this.#between = false;
  }

  #told(reason: string): void {
    this.#ledger.told += 1;
    this.reasons.push(reason);
    if (reason === 'snapshot' && this.#between) return;
    if (this.#at !== undefined && !this.#history.lost(this.#at, reason))
      this.#fail(`was told '${reason}' at ${show(this.#at)}, which is no loss of the log`);
  }

  #lost(commits: number, what: string): void {
    this.#ledger.lost += commits;
    this.#problem(what);
  }

  #repeat(value: FaultValue): void {
    this.#ledger.repeated += 1;
    this.#problem(`got ${show(value)} again`);
  }

  #fail(what: string): void {
    this.#ledger.failed += 1;
    this.#problem(what);
  }

  #problem(what: string): void {
    if (this.#ledger.problems.length < MAX_PROBLEMS)
      this.#ledger.problems.push(`${this.#name} ${what}`);
  }
}

function same(a: Position, b: Position): boolean {
  return a.ordinal === b.ordinal && a.id === b.id && a.epoch === b.epoch;
}

function show(value: Position | FaultValue | undefined): string {
  if (value === undefined) return 'nowhere';
  if ('n' in value) return `${value.n}${value.of > 1 ? `/${value.index}` : ''}`;
  return `${value.ordinal}@${value.epoch.slice(0, 4)}:${value.id}`;
}
