import type { Clock } from '@brokerfeed/core';

/**
 * How long ago a moment was, in milliseconds. Clocks are set back: a moment that is still to come is of unknown age, and
 * taken for one long ago, so that what waits for it does not wait until the clock gets there again.
 */
export function elapsed(clock: Clock, since: number): number {
  const ms = clock.now() - since;
  return ms < 0 ? Number.POSITIVE_INFINITY : ms;
}
