/** What the page tells the tests, as `window.seen`. */
export interface Seen {
  /** Data of the feed, in order: numbers, and snapshots of them. */
  readonly values: readonly (number | { readonly snapshot: readonly number[] })[];
  /** What the link told: `attached`, `gap trimmed`. */
  readonly states: readonly string[];
  /** The statuses of errors that ended the subscription; 0 for none. */
  readonly errors: readonly number[];
}

/** Notes what the page sees. */
export class SeenLog implements Seen {
  readonly values: Seen['values'][number][] = [];
  readonly states: string[] = [];
  readonly errors: number[] = [];
  #told: (() => void)[] = [];

  note(something: Partial<Seen>): void {
    this.values.push(...(something.values ?? []));
    this.states.push(...(something.states ?? []));
    this.errors.push(...(something.errors ?? []));
    for (const tell of this.#told.splice(0)) tell();
  }

  /** Resolves once there is more than `known` notes. Timers would not do: those of a hidden tab are throttled. */
  async after(known: number): Promise<Seen> {
    while (countOf(this) <= known) {
      await new Promise<void>((resolve) => this.#told.push(resolve));
    }
    return this;
  }
}

/** Answers how much was noted. */
export function countOf({ values, states, errors }: Seen): number {
  return values.length + states.length + errors.length;
}
