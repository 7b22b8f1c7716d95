/**
 * Something shared, on which its users keep what they derive from it: made once, and gone when it goes. Nearly always there
 * are two of them at the most, such as a token and a frame: no map is made then.
 */
export class Memoized {
  #firstOwner: object | undefined;
  #first: unknown;
  #secondOwner: object | undefined;
  #second: unknown;
  #others: Map<object, unknown> | undefined;

  /** Answers what `owner` keeps here, if it was made. */
  kept(owner: object): unknown {
    if (owner === this.#firstOwner) return this.#first;
    if (owner === this.#secondOwner) return this.#second;
    return this.#others?.get(owner);
  }

  /** Answers what `owner` keeps here, made at the first asking. */
  memo<T>(owner: object, make: () => T): T {
    if (owner === this.#firstOwner) return this.#first as T;
    if (owner === this.#secondOwner) return this.#second as T;
    if (this.#others?.has(owner)) return this.#others.get(owner) as T;
    const made = make();
    // Only now: what was made on the way may be kept here too.
    if (this.#firstOwner === undefined) {
      this.#firstOwner = owner;
      this.#first = made;
    } else if (this.#secondOwner === undefined) {
      this.#secondOwner = owner;
      this.#second = made;
    } else {
      this.#others ??= new Map();
      this.#others.set(owner, made);
    }
    return made;
  }
}
