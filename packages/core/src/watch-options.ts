import { type Clock, systemClock } from './clock.ts';
import { integerOption, refuseOption } from './option-check.ts';
import { RETRY_DELAYS_MS } from './retry.ts';

/** The options of `watch`. */
export interface WatchOptions {
  /**
   * Events that are held for a watcher which does not take them; then the oldest are dropped, and it is told how many. The
   * topic's live read holds at least as many.
   * @default 1024
   */
  readonly capacity?: number;
  /**
   * Watches only what is appended, or only what is announced. A topic that is never appended to needs no live read.
   * @default both, where the broker carries announcements
   */
  readonly only?: 'entries' | 'announcements';
  /**
   * How long the live read of the topic outlives its last reader, in milliseconds.
   * @default 5000
   */
  readonly lingerMs?: number;
  /** Closes the watch. */
  readonly signal?: AbortSignal;
  /** @default the system's */
  readonly clock?: Clock;
}

/** Options checked, with every default filled in. */
export interface ResolvedWatchOptions {
  readonly capacity: number;
  readonly only: 'entries' | 'announcements' | undefined;
  readonly lingerMs: number;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
  /** Of the tail's ring, through which a whole batch passes before the watch can take it. */
  readonly highWaterMark: number;
  readonly retryDelaysMs: readonly number[];
}

const MAX_CAPACITY = 1_000_000;

/** As many as a feed asks for: a batch that passes whole can be counted, however little of it is kept. */
const MIN_RING_ENTRIES = 1024;

const MAX_DELAY_MS = 2 ** 31 - 1;

/** Checks the options of a watch. Throws `OPTION_INVALID`; the sentence names the option. */
export function resolveWatchOptions(options: WatchOptions): ResolvedWatchOptions {
  if (typeof options !== 'object' || options === null)
    refuseOption('options', 'an object', options);
  const { only, signal, clock = systemClock } = options;
  if (only !== undefined && only !== 'entries' && only !== 'announcements')
    refuseOption('only', "'entries' or 'announcements'", only);
  const capacity = integerOption('capacity', options.capacity, 1024, 1, MAX_CAPACITY);
  return {
    capacity,
    only,
    lingerMs: integerOption('lingerMs', options.lingerMs, 5_000, 0, MAX_DELAY_MS),
    signal,
    clock,
    highWaterMark: Math.max(capacity, MIN_RING_ENTRIES),
    retryDelaysMs: RETRY_DELAYS_MS,
  };
}
