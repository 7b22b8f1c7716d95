import { Moments } from '../../../../test/support/moments.ts';
import type { Clock } from '../../src/clock.ts';

interface Timer {
  readonly due: number;
  readonly ring: () => void;
}

/** Time that passes when a test says so. */
export class ManualClock implements Clock {
  #now = 1_000_000;
  readonly #timers = new Set<Timer>();
  readonly #moments = new Moments();

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#now + ms, ring: callback };
    this.#timers.add(timer);
    this.#moments.tell();
    return () => this.#timers.delete(timer);
  }

  /** How long until each timer that is set rings, soonest first. */
  get waits(): readonly number[] {
    return [...this.#timers].map(({ due }) => due - this.#now).sort((a, b) => a - b);
  }

  /** Lets time pass. Timers that ring in it ring at their own moment, and may set others. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = [...this.#timers].sort((a, b) => a.due - b.due)[0];
      if (next === undefined || next.due > end) break;
      this.#now = next.due;
      this.#timers.delete(next);
      next.ring();
    }
    this.#now = end;
  }

  /** Waits until a timer is set that rings in so many milliseconds. */
  untilWait(ms: number): Promise<void> {
    return this.#moments.until(
      () => this.waits.includes(ms),
      () => `timers wait for ${this.waits.join(', ') || 'nothing'}, not ${ms}`,
    );
  }
}
