export type MaybePromise<T> = T | Promise<T>;

export function isPromise<T>(value: MaybePromise<T>): value is Promise<T> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Goes on with a value at once, or with a promise's when it has one: most callbacks are synchronous, and a turn is dear. */
export function chain<T, R>(
  value: MaybePromise<T>,
  next: (value: T) => MaybePromise<R>,
): MaybePromise<R> {
  return isPromise(value) ? value.then(next) : next(value);
}

/** A value that is there, or will be: once it is there, it is answered without a promise. */
export class Eventual<T> {
  #value: MaybePromise<T>;

  constructor(value: MaybePromise<T>) {
    this.#value = value;
    if (!isPromise(value)) return;
    value.then(
      (settled) => {
        this.#value = settled;
      },
      () => {}, // whoever asks gets the rejected promise
    );
  }

  get(): MaybePromise<T> {
    return this.#value;
  }
}
