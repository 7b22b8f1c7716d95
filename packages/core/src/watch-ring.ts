import type { WatchEvent, WatchItem, WatchLag } from './watch-event.ts';

/**
 * The newest events of one watch. A full ring drops its oldest, so that a loss always lies before the oldest survivor;
 * one that is told of (`lag`) keeps its place between the events on either side.
 */
export class WatchRing {
  readonly #capacity: number;
  /** The items from `#head` on; those before it are taken, and cut off in bulk. */
  #items: (WatchItem | undefined)[] = [];
  #head = 0;
  /** What is missing before the oldest item. */
  #lost: Loss = NONE;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  push(event: WatchEvent): void {
    if (this.#items.length - this.#head >= this.#capacity) this.#drop();
    this.#items.push(event);
  }

  /** Marks a loss after the newest event; undefined where its size is unknown. */
  lag(missed: number | undefined): void {
    const loss = { missed };
    const last = this.#items.length - 1;
    const newest = last < this.#head ? undefined : this.#items[last];
    if (newest === undefined) this.#lost = joined(this.#lost, loss);
    else if (newest.kind === 'lagged') this.#items[last] = lagOf(joined(newest, loss));
    else {
      if (last + 1 - this.#head >= this.#capacity) this.#drop();
      this.#items.push(lagOf(loss));
    }
  }

  /** Takes what comes first: the loss before the oldest event, or that event. */
  shift(): WatchItem | undefined {
    const oldest = this.#items[this.#head];
    if (oldest?.kind === 'lagged') {
      // Two losses with no event between them are one.
      this.#lost = joined(this.#lost, oldest);
      this.#advance();
    }
    if (this.#lost !== NONE) {
      const lag = lagOf(this.#lost);
      this.#lost = NONE;
      return lag;
    }
    if (oldest !== undefined) this.#advance();
    return oldest;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
    this.#lost = NONE;
  }

  #drop(): void {
    const oldest = this.#items[this.#head];
    if (oldest === undefined) return;
    this.#lost = joined(this.#lost, oldest.kind === 'lagged' ? oldest : ONE);
    this.#advance();
  }

  #advance(): void {
    this.#items[this.#head] = undefined;
    this.#head += 1;
    // As many moves as drops, on average: cutting one by one would move the whole ring for each event.
    if (this.#head * 2 > this.#items.length) {
      this.#items.splice(0, this.#head);
      this.#head = 0;
    }
  }
}

type Loss = Pick<WatchLag, 'missed'>;

const NONE: Loss = { missed: 0 };
const ONE: Loss = { missed: 1 };

function joined(one: Loss, other: Loss): Loss {
  const known = one.missed !== undefined && other.missed !== undefined;
  return { missed: known ? one.missed + other.missed : undefined };
}

function lagOf({ missed }: Loss): WatchLag {
  return { kind: 'lagged', missed };
}
