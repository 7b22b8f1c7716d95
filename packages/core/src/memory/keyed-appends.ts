import { createHash } from 'node:crypto';
import { BrokerError } from '../errors.ts';

interface KeyedAppend<Result> {
  readonly digest: string;
  readonly result: Result;
  readonly expires: number;
}

/** What appends with an idempotency key have written, for as long as their keys are remembered. */
export class KeyedAppends<Result> {
  /** Oldest first. */
  readonly #appends = new Map<string, KeyedAppend<Result>>();

  /**
   * Appends, or answers what the first append of this key has written. `values` is compared with that one's: others are
   * refused with `IDEMPOTENCY_CONFLICT`.
   */
  once(key: string, values: unknown, windowMs: number, now: number, append: () => Result): Result {
    // The key outlives what retention keeps of the values.
    const digest = createHash('sha256').update(JSON.stringify(values)).digest('base64');
    const earlier = this.#find(key, now);
    if (earlier === undefined) {
      const result = append();
      this.#appends.set(key, { digest, result, expires: now + windowMs });
      return result;
    }
    if (earlier.digest === digest) return earlier.result;
    throw new BrokerError('IDEMPOTENCY_CONFLICT', 'the idempotency key was used for other values');
  }

  #find(key: string, now: number): KeyedAppend<Result> | undefined {
    // Oldest first, so that the look stops at the first that is remembered. Brokers with other windows may have left
    // some that expired behind it: those are looked at when their own key comes again.
    for (const [name, { expires }] of this.#appends) {
      if (expires > now) break;
      this.#appends.delete(name);
    }
    const found = this.#appends.get(key);
    if (found === undefined || found.expires > now) return found;
    this.#appends.delete(key);
    return undefined;
  }
}
