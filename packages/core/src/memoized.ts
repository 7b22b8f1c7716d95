/** Something shared, on which its users keep what they derive from it: made once, and gone when it goes. */
export class Memoized {
  #owner: object | undefined;
  #kept: unknown;
  #others: Map<object, unknown> | undefined;

  /** Answers what `owner` keeps here, made at the first asking. (Nearly always there is one owner: no map is made.) */
  memo<T>(owner: object, make: () => T): T {
    if (this.#owner === owner) return this.#kept as T;
    if (this.#owner === undefined) {
      this.#kept = make();
      this.#owner = owner;
      return this.#kept as T;
    }
    this.#others ??= new Map();
    let kept = this.#others.get(owner) as T | undefined;
    if (kept === undefined) {
      kept = make();
      this.#others.set(owner, kept);
    }
    return kept;
  }
}
