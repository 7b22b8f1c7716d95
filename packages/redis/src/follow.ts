import {
  type BrokerError,
  type Clock,
  type Commit,
  delay,
  isBrokerError,
  type Loss,
  type Page,
  type Position,
  type Sink,
} from '@brokerfeed/core';
import { readMark, type StreamEntry } from './commit-codec.ts';
import type { Watch, WatchEvents } from './live-reader.ts';
import { commitAfter } from './page-reply.ts';

export interface FollowOptions {
  /** Reads one page of the topic by the page script. */
  page(from: Position, limit: number): Promise<Page>;
  /** Reads the topic live. */
  watch(from: Position, events: WatchEvents): Watch;
  readonly sink: Sink;
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** Why the live part of a read ended, and the position it had reached. */
type LiveEnd =
  | { readonly kind: 'aborted' }
  /** What came is not known to follow, or did not come: the page script says. */
  | { readonly kind: 'unsure'; readonly at: Position }
  | { readonly kind: 'broken'; readonly at: Position; readonly error: BrokerError };

const PAGE_COMMITS = 256;
/** Waits before the read goes on after one broken live read, then another with nothing between: some seconds in all. */
const BROKEN_DELAYS_MS: readonly number[] = [0, 50, 200, 500, 1_000, 2_000];

/**
 * Reads a topic live: pages to the end of the log, then takes commits from the shared reader as long as each is known to
 * follow the one before, by what the append script wrote into it. Whatever else comes is left to the page script, which
 * also tells a loss; so nothing is passed on that was not proved, and nothing is read twice.
 */
export async function follow(from: Position, options: FollowOptions): Promise<Loss | undefined> {
  const { sink, signal, clock } = options;
  let at = from;
  let phase: 'check' | 'live' = 'check';
  let broken = 0;
  while (!signal.aborted) {
    const page = await options.page(at, PAGE_COMMITS);
    if (signal.aborted) break;
    if (page.verdict !== 'ok') return page.verdict;
    if (phase === 'check') {
      phase = 'live';
      sink.live();
    }
    if (page.commits.length > 0) {
      broken = 0;
      sink.commits(page.commits);
      at = page.commits.at(-1)?.position ?? at;
    }
    if (!page.atTip) continue;

    const end = await readLive(at, options);
    if (end.kind === 'aborted') break;
    if (end.kind === 'broken') {
      if (end.at !== at) broken = 0;
      const ms = BROKEN_DELAYS_MS[broken];
      if (ms === undefined || !isBrokerError(end.error, 'UNAVAILABLE')) throw end.error;
      broken += 1;
      await delay(clock, ms, signal);
    }
    at = end.at;
  }
  return undefined;
}

function readLive(from: Position, options: FollowOptions): Promise<LiveEnd> {
  const { sink, signal } = options;
  return new Promise((resolve) => {
    let at = from;
    const finish = (end: LiveEnd): void => {
      watch.end();
      signal.removeEventListener('abort', abort);
      resolve(end);
    };
    const abort = (): void => finish({ kind: 'aborted' });
    const watch = options.watch(from, {
      entries(entries) {
        const commits = takeProved(at, entries);
        at = commits.at(-1)?.position ?? at;
        watch.after = at.id;
        if (commits.length > 0) sink.commits(commits);
        if (commits.length < entries.length) finish({ kind: 'unsure', at });
      },
      moved: () => finish({ kind: 'unsure', at }),
      broken: (error) => finish({ kind: 'broken', at, error }),
    });
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
  });
}

/** Takes the commits that are known to follow a position and each other. */
function takeProved(from: Position, entries: readonly StreamEntry[]): Commit[] {
  const commits: Commit[] = [];
  let at = from;
  for (const entry of entries) {
    const mark = readMark(entry[1]);
    if (mark?.epoch !== at.epoch || mark.ordinal !== at.ordinal + 1 || mark.previousId !== at.id) {
      break;
    }
    const commit = commitAfter(at, entry);
    commits.push(commit);
    at = commit.position;
  }
  return commits;
}
