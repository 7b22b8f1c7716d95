/** Values that go through adapters in one turn of the event loop, of all feeds together. */
const PER_TURN = 64;

/**
 * Lets a bounded number through in each turn of the event loop, in the order in which they came. An adapter spends tens of
 * microseconds on a value, and an entry wakes every subscriber of its topic: thousands at once would stop the process.
 */
export class Turnstile {
  #left = PER_TURN;
  #queue: (() => void)[] = [];
  #planned = false;

  /** Answers undefined where it is free, or what to wait for. */
  pass(): Promise<void> | undefined {
    if (!this.#planned) {
      this.#planned = true;
      setImmediate(() => this.#nextTurn());
    }
    if (this.#left > 0) {
      this.#left -= 1;
      return undefined;
    }
    return new Promise((resolve) => this.#queue.push(resolve));
  }

  #nextTurn(): void {
    const passing = this.#queue.splice(0, PER_TURN);
    this.#left = PER_TURN - passing.length;
    this.#planned = this.#queue.length > 0;
    if (this.#planned) setImmediate(() => this.#nextTurn());
    for (const pass of passing) pass();
  }
}

/** The turnstile of this process. */
export const turnstile: Turnstile = new Turnstile();
