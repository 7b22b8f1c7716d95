/** The options of {@link fullJitter}. */
export interface JitterOptions {
  /** The longest first wait, in milliseconds; it doubles with every attempt. @default 1000 */
  readonly baseMs?: number;
  /** The longest wait of all, in milliseconds. @default 30_000 */
  readonly maxMs?: number;
  /** Answers a number from 0 to below 1. @default Math.random */
  readonly random?: () => number;
}

/**
 * Makes a function from an attempt, counted from 0, to a wait in milliseconds: anywhere from none to the longest one
 * ("full jitter"), so that clients that lost one server together do not come back together. Also good as the
 * `retryDelayMs` of tRPC's `createWSClient`, whose own first wait is none. Throws a `RangeError` for a wait that is none.
 */
export function fullJitter({
  baseMs = 1_000,
  maxMs = 30_000,
  random = Math.random,
}: JitterOptions = {}): (attempt: number) => number {
  for (const ms of [baseMs, maxMs]) {
    if (!(ms >= 0)) throw new RangeError(`a wait is a number of milliseconds, not ${ms}`);
  }
  return (attempt) => random() * Math.min(maxMs, baseMs * 2 ** attempt);
}
