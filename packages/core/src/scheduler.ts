/** How long turns run before other work of the process gets its own, in milliseconds. */
const SLICE_MS = 4;

/** Turns between two rounds of writes, unless the slice is over before. */
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
 * longer than a slice and a turn.
 */
export class Scheduler {
  /** Turns of this lap, from `#next` on; those queued meanwhile are of the next one. */
  #lap: Turn[] = [];
  #next = 0;
  #queued: Turn[] = [];
  #outlets: Outlet[] = [];
  #state: 'idle' | 'planned' = 'idle';
  readonly #drain = (): void => this.#runSlice();

  /** Queues a turn. It runs after what runs now. */
  add(turn: Turn): void {
    this.#queued.push(turn);
    this.#plan();
  }

  /** Has an outlet flushed after this round of turns, so that what they all wrote to it leaves in one write. */
  flushLater(outlet: Outlet): void {
    this.#outlets.push(outlet);
    this.#plan();
  }

  #plan(): void {
    if (this.#state === 'planned') return;
    this.#state = 'planned';
    queueMicrotask(this.#drain);
  }

  #runSlice(): void {
    const end = performance.now() + SLICE_MS;
    do {
      for (let left = ROUND; left > 0; left -= 1) {
        const turn = this.#take();
        if (turn === undefined) break;
        turn.turn();
        if (performance.now() >= end) break;
      }
      this.#flush();
    } while (this.#hasWork() && performance.now() < end);
    if (this.#hasWork()) setImmediate(this.#drain);
    else this.#state = 'idle';
  }

  /** Flushes for a slice: large writes to many sockets take longer than the turns that made them. */
  #flush(): void {
    const outlets = this.#outlets;
    this.#outlets = [];
    const end = performance.now() + SLICE_MS;
    for (let at = 0; at < outlets.length; at += 1) {
      (outlets[at] as Outlet).flush();
      if (performance.now() < end) continue;
      this.#outlets = [...outlets.slice(at + 1), ...this.#outlets];
      return;
    }
  }

  #take(): Turn | undefined {
    if (this.#next === this.#lap.length) {
      this.#lap = this.#queued;
      this.#queued = [];
      this.#next = 0;
    }
    const turn = this.#lap[this.#next];
    if (turn !== undefined) this.#next += 1;
    return turn;
  }

  #hasWork(): boolean {
    return this.#next < this.#lap.length || this.#queued.length > 0 || this.#outlets.length > 0;
  }
}

/** The scheduler of this process: fairness is among all that share its event loop. */
export const scheduler: Scheduler = new Scheduler();
