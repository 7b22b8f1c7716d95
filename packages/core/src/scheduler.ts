/** How long turns run before other work of the process gets its own, in milliseconds. */
const SLICE_MS = 4;

/** Turns between two looks at the clock, and between two rounds of writes. */
const ROUND = 64;

/** Does a bounded piece of work. Never throws. */
export interface Turn {
  turn(): void;
}

/** Has gathered output. Never throws. */
export interface Outlet {
  flush(): void;
}

/**
 * Shares the event loop among subscribers that are pushed to. Each has one turn in the queue at most and gets one run of
 * entries a turn, so that a flood on one topic delays those of another by one round, and no burst blocks the process for
 * longer than a slice.
 */
export class Scheduler {
  #turns: Turn[] = [];
  #next = 0;
  #outlets: Outlet[] = [];
  #state: 'idle' | 'planned' = 'idle';
  readonly #drain = (): void => this.#runSlice();

  /** Queues a turn. It runs after what runs now. */
  add(turn: Turn): void {
    this.#turns.push(turn);
    if (this.#state === 'planned') return;
    this.#state = 'planned';
    queueMicrotask(this.#drain);
  }

  /** Has an outlet flushed after this round of turns, so that what they all wrote to it leaves in one write. */
  flushLater(outlet: Outlet): void {
    this.#outlets.push(outlet);
    if (this.#state === 'planned') return;
    this.#state = 'planned';
    queueMicrotask(this.#drain);
  }

  #runSlice(): void {
    const end = performance.now() + SLICE_MS;
    do {
      const stop = Math.min(this.#next + ROUND, this.#turns.length);
      while (this.#next < stop) {
        this.#turns[this.#next]?.turn();
        this.#next += 1;
      }
      if (this.#next === this.#turns.length) {
        this.#turns = [];
        this.#next = 0;
      }
      const outlets = this.#outlets;
      this.#outlets = [];
      for (const outlet of outlets) outlet.flush();
    } while ((this.#turns.length > 0 || this.#outlets.length > 0) && performance.now() < end);
    if (this.#turns.length === 0 && this.#outlets.length === 0) this.#state = 'idle';
    else setImmediate(this.#drain);
  }
}

/** The scheduler of this process: fairness is among all that share its event loop. */
export const scheduler: Scheduler = new Scheduler();
