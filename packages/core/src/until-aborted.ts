/** The answer of {@link untilAborted} for a signal that came first. */
export const ABORTED: unique symbol = Symbol('aborted');

/** Waits for a promise, but no longer than until `signal` aborts. Leaves no listener behind; a late rejection is nobody's. */
export function untilAborted<T>(
  promise: Promise<T>,
  signal: AbortSignal,
): Promise<T | typeof ABORTED> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => resolve(ABORTED);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
