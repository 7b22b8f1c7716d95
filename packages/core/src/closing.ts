/** The answer of {@link untilClosed} where the closing came first. */
export const CLOSED: unique symbol = Symbol('closed');

/**
 * Tells once that a subscription was closed: an `AbortSignal` at a fraction of its memory and time, since there is one for
 * each subscriber.
 */
export class Closing {
  #callbacks: (() => void)[] | undefined;
  #closed = false;

  get closed(): boolean {
    return this.#closed;
  }

  /** Calls back all who wait, in their order. Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    const callbacks = this.#callbacks ?? [];
    this.#callbacks = undefined;
    for (const callback of callbacks) callback();
  }

  /** Calls back at the closing, or at once where that has been. */
  whenClosed(callback: () => void): void {
    if (this.#closed) callback();
    else if (this.#callbacks === undefined) this.#callbacks = [callback];
    else this.#callbacks.push(callback);
  }

  forget(callback: () => void): void {
    const index = this.#callbacks?.indexOf(callback) ?? -1;
    if (index >= 0) this.#callbacks?.splice(index, 1);
  }
}

/** Waits for a promise, but no longer than until the closing. Leaves no callback behind; a late rejection is nobody's. */
export function untilClosed<T>(promise: Promise<T>, closing: Closing): Promise<T | typeof CLOSED> {
  return new Promise((resolve, reject) => {
    const onClose = (): void => resolve(CLOSED);
    closing.whenClosed(onClose);
    promise.then(resolve, reject).finally(() => closing.forget(onClose));
  });
}
