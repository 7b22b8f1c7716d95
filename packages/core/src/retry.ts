import { type Clock, delay } from './clock.ts';
import { BrokerError, isBrokerError } from './errors.ts';

/**
 * Waits between tries to read a log that does not answer, in milliseconds. They span 31 s, so that the restart or failover
 * of a store passes unseen; the first are short, since most outages are.
 */
export const RETRY_DELAYS_MS: readonly number[] = [250, 1_000, 4_000, 10_000, 16_000];

export interface RetryPolicy {
  readonly clock: Clock;
  readonly delaysMs: readonly number[];
}

/** Tells whether another try may help. A closed broker, a refused topic or damage will not mend. */
export function isRetryable(error: unknown): boolean {
  return !isBrokerError(error) || isBrokerError(error, 'UNAVAILABLE');
}

/** What a log that could not be read is said to have rejected with: an error of no broker is an outage too. */
export function asBrokerError(error: unknown): BrokerError {
  if (isBrokerError(error)) return error;
  return new BrokerError('UNAVAILABLE', 'the log cannot be read', { cause: error });
}

/** Runs `attempt` until it resolves, the policy is used up, or `signal` aborts; then rejects with the last error. */
export async function retrying<T>(
  attempt: () => Promise<T>,
  policy: RetryPolicy,
  signal: AbortSignal,
): Promise<T> {
  for (let tried = 0; ; tried += 1) {
    try {
      return await attempt();
    } catch (error) {
      const ms = policy.delaysMs[tried];
      if (ms === undefined || signal.aborted || !isRetryable(error)) throw asBrokerError(error);
      await delay(policy.clock, ms, signal);
      if (signal.aborted) throw asBrokerError(error);
    }
  }
}
