import {
  type Clock,
  delay,
  isBrokerError,
  type Loss,
  type Page,
  type Position,
  type Sink,
} from '@brokerfeed/core';
import { Arrivals } from './arrivals.ts';
import type { Watch, WatchEvents } from './live-reader.ts';
import { toBrokerError } from './redis-error.ts';
import { until } from './until.ts';

export interface FollowOptions {
  /** Reads one page of the topic by the page script. */
  page(from: Position, limit: number): Promise<Page>;
  /** Hears what is announced of the topic. Resolves when it does. */
  watch(events: WatchEvents): Promise<Watch>;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

const PAGE_COMMITS = 256;
/** Waits before the read goes on after one broken watch, then another with nothing between: some seconds in all. */
const BROKEN_DELAYS_MS: readonly number[] = [0, 50, 200, 500, 1_000, 2_000];

/**
 * Reads a topic live: watches it, reads pages to the end of the log, then takes commits as they are announced, as long as
 * each is known to follow the one before, by what the append script wrote into it. Whatever else comes is left to the page
 * script, which also tells a loss; so nothing is passed on that was not proved, and nothing twice.
 */
export async function follow(from: Position, options: FollowOptions): Promise<Loss | undefined> {
  const { sink, signal, clock } = options;
  let at = from;
  let phase: 'check' | 'live' = 'check';
  let broken = 0;
  while (!signal.aborted) {
    const start = at;
    const arrivals = new Arrivals(sink);
    const stop = (): void => arrivals.stop();
    signal.addEventListener('abort', stop);
    const watch = await join(arrivals, options);
    try {
      while (watch !== undefined && arrivals.failure === undefined) {
        arrivals.hold();
        const page = await options.page(at, PAGE_COMMITS);
        if (signal.aborted) return undefined;
        if (page.verdict !== 'ok') return page.verdict;
        if (phase === 'check') {
          phase = 'live';
          sink.live();
        }
        if (page.commits.length > 0) sink.commits(page.commits);
        at = page.commits.at(-1)?.position ?? at;
        if (page.atTip && !signal.aborted) at = await arrivals.pass(at, watch);
        if (signal.aborted) return undefined;
      }
    } finally {
      signal.removeEventListener('abort', stop);
      watch?.end();
    }
    if (signal.aborted) break;
    if (at !== start) broken = 0;
    const ms = BROKEN_DELAYS_MS[broken];
    if (ms === undefined || !isBrokerError(arrivals.failure, 'UNAVAILABLE')) throw arrivals.failure;
    broken += 1;
    await delay(clock, ms, signal);
  }
  return undefined;
}

/** Answers nothing where the arrivals have failed instead, or the read is over. */
async function join(arrivals: Arrivals, options: FollowOptions): Promise<Watch | undefined> {
  const joining = options.watch(arrivals);
  try {
    return await until(joining, options.signal);
  } catch (error) {
    joining.then(
      (watch) => watch.end(),
      () => {},
    );
    if (!options.signal.aborted) arrivals.broken(toBrokerError(error, 'a live read'));
    return undefined;
  }
}
