import type { CheckedAppend } from '../append-check.ts';
import type { Bounds, Commit, Loss, Page, Retention, Start } from '../broker.ts';
import { BrokerError } from '../errors.ts';
import { newEpoch, type Position } from '../position.ts';
import { KeyedAppends } from './keyed-appends.ts';

/** What an append leaves behind it, where it does not say so itself. */
export interface AppendPolicy {
  readonly maxEntries: number;
  readonly maxAgeMs: number;
  readonly idempotencyWindowMs: number;
}

/** One incarnation of one topic. Every reader is handed the same objects, so all of them are frozen. */
export class TopicLog {
  /** Who is told of each change. They only make a note of it: a reader runs later, never inside an append. */
  readonly watchers: Set<() => void> = new Set();
  /** The retained commits by ordinal, oldest first: those after `#first`, up to and with `#last`. */
  readonly #commits = new Map<number, { readonly commit: Commit; readonly at: number }>();
  readonly #keyed = new KeyedAppends<Position>();
  #first: Position = Object.freeze({ epoch: newEpoch(), id: '0', ordinal: 0 });
  #last: Position = this.#first;
  #entries = 0;

  append(write: CheckedAppend, policy: AppendPolicy, now: number): Position {
    const { entries, idempotencyKey: key } = write;
    if (key === undefined) return this.#append(write, policy, now);
    const values = entries.map((entry) => entry.value);
    const append = (): Position => this.#append(write, policy, now);
    return this.#keyed.once(key, values, policy.idempotencyWindowMs, now, append);
  }

  page(start: Start, limit: number): Page {
    const bounds = this.bounds();
    const from = start === 'earliest' ? bounds.first : start === 'latest' ? bounds.last : start;
    const verdict = this.#verdict(from);
    if (verdict !== 'ok') return { verdict, bounds };
    const end = Math.min(from.ordinal + limit, bounds.last.ordinal);
    const commits: Commit[] = [];
    for (let ordinal = from.ordinal + 1; ordinal <= end; ordinal += 1) {
      commits.push(this.#held(ordinal).commit);
    }
    return { verdict, from, commits, atTip: end === bounds.last.ordinal, bounds };
  }

  bounds(): Bounds {
    return { first: this.#first, last: this.#last };
  }

  trim(keepCommits: number): void {
    while (this.#commits.size > keepCommits) this.#dropOldest();
    this.wake();
  }

  wake(): void {
    for (const wake of [...this.watchers]) wake();
  }

  #append({ entries, retention }: CheckedAppend, policy: AppendPolicy, now: number): Position {
    const previous = this.#last;
    const ordinal = previous.ordinal + 1;
    const position = Object.freeze({ epoch: previous.epoch, id: String(ordinal), ordinal });
    const frozen = Object.freeze(entries.map((entry) => Object.freeze(entry)));
    this.#commits.set(ordinal, {
      commit: Object.freeze({ previous, position, entries: frozen }),
      at: now,
    });
    this.#last = position;
    this.#entries += entries.length;
    this.#retain(retention, policy, now);
    this.wake();
    return position;
  }

  /** Decides whether all that follows a position is here. Epoch first: in another one, ordinals mean nothing. */
  #verdict(at: Position): 'ok' | Loss {
    if (at.epoch !== this.#last.epoch) return 'epoch';
    if (at.ordinal > this.#last.ordinal) return 'ahead';
    if (at.ordinal < this.#first.ordinal) return 'trimmed';
    return at.id === String(at.ordinal) ? 'ok' : 'forked';
  }

  /** Drops whole commits, oldest first. The newest stays, however large or old. */
  #retain(retention: Retention | undefined, policy: AppendPolicy, now: number): void {
    const maxEntries = retention?.maxEntries ?? policy.maxEntries;
    const maxAgeMs = retention?.maxAgeMs ?? policy.maxAgeMs;
    while (this.#commits.size > 1) {
      const { commit, at } = this.#held(this.#first.ordinal + 1);
      if (this.#entries - commit.entries.length < maxEntries && now - at <= maxAgeMs) return;
      this.#dropOldest();
    }
  }

  #dropOldest(): void {
    const { commit } = this.#held(this.#first.ordinal + 1);
    this.#commits.delete(commit.position.ordinal);
    this.#entries -= commit.entries.length;
    this.#first = commit.position;
  }

  #held(ordinal: number): { readonly commit: Commit; readonly at: number } {
    const held = this.#commits.get(ordinal);
    if (held === undefined) throw new BrokerError('DAMAGED', `commit ${ordinal} is not in the log`);
    return held;
  }
}
