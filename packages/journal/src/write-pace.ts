/** Fewer appends than this are cheaper together than apart. */
const MIN_SPLIT = 64;
/** How much of each measurement goes into the average. */
const SMOOTHING = 0.1;

/**
 * Decides whether the next group is prepared while the last one is synced. Callers who wait for their appends come back all
 * at once: alone, the processor waits for the disk and then the disk for the processor. Overlapped, half of them are synced
 * while the other half is prepared. That pays where preparing all of them takes longer than a sync; on a slow disk it
 * would halve what a sync carries, and gain nothing.
 */
export class WritePace {
  #overlaps = false;
  #syncMs = 0;
  #appendMs = 0;
  #lastAt = 0;

  get overlaps(): boolean {
    return this.#overlaps;
  }

  /** How many of the appends that wait become the first of overlapping groups. */
  firstOf(waiting: number): number {
    return waiting >= MIN_SPLIT ? Math.ceil(waiting / 2) : waiting;
  }

  /** A group was written and synced by itself; the rest of the time since the last one was spent on preparing it. */
  alone(syncMs: number, appends: number): void {
    const now = performance.now();
    const busyMs = now - this.#lastAt - syncMs;
    this.#lastAt = now;
    this.#measured(syncMs, busyMs, appends, appends);
  }

  /** A group was synced in `totalMs`, while `prepared` appends were prepared in a part of that time. */
  overlapped(preparingMs: number, totalMs: number, prepared: number, appends: number): void {
    this.#lastAt = performance.now();
    this.#measured(totalMs, preparingMs, prepared, prepared + appends);
  }

  #measured(syncMs: number, busyMs: number, prepared: number, waiting: number): void {
    this.#syncMs += SMOOTHING * (syncMs - this.#syncMs);
    if (prepared > 0) this.#appendMs += SMOOTHING * (busyMs / prepared - this.#appendMs);
    this.#overlaps = waiting >= MIN_SPLIT && this.#appendMs * waiting > this.#syncMs;
  }
}
