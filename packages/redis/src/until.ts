/** Settles as the promise does, or rejects with the reason of the first signal that aborts. */
export function until<T>(
  promise: Promise<T>,
  ...signals: readonly (AbortSignal | undefined)[]
): Promise<T> {
  const ends = signals.filter((signal) => signal !== undefined);
  return new Promise((resolve, reject) => {
    const clear = (): void => {
      for (const end of ends) end.removeEventListener('abort', abort);
    };
    const abort = (): void => {
      clear();
      reject(ends.find((end) => end.aborted)?.reason);
    };
    for (const end of ends) end.addEventListener('abort', abort, { once: true });
    promise.finally(clear).then(resolve, reject);
    if (ends.some((end) => end.aborted)) abort();
  });
}
