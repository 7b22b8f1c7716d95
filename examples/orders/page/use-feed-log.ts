import type { FeedState } from '@brokerfeed/client';
import { useEffect, useState } from 'react';
import type { BoardClient } from './board-client.ts';

/** Something that the feed told, for people. */
export interface FeedNote {
  readonly key: number;
  readonly at: Date;
  readonly text: string;
}

export interface FeedLog {
  /** How the feed stands now. */
  readonly standing: 'waiting' | FeedState['state'];
  /** The newest first. */
  readonly notes: readonly FeedNote[];
}

const NOTES = 4;

/** Follows what the link tells about a client's feed. */
export function useFeedLog(client: BoardClient): FeedLog {
  const [log, setLog] = useState<FeedLog>({ standing: 'waiting', notes: [] });
  useEffect(
    () =>
      client.onFeedState((state) => {
        setLog(({ standing, notes }) => {
          const note = { key: (notes[0]?.key ?? 0) + 1, at: new Date(), text: describe(state) };
          // Of many tries in a row the newest is enough.
          const before = standing === 'lost' && state.state === 'lost' ? notes.slice(1) : notes;
          return { standing: state.state, notes: [note, ...before].slice(0, NOTES) };
        });
      }),
    [client],
  );
  return log;
}

function describe(state: FeedState): string {
  switch (state.state) {
    case 'attached':
      return 'attached';
    case 'catching-up':
      return 'catching up: what was missed follows';
    case 'live':
      return 'live: nothing is missing';
    case 'outage':
      return 'the server cannot read the log now';
    case 'gap':
      return `the place in the log is lost${state.reason ? ` (${state.reason})` : ': a snapshot follows'}`;
    case 'lost':
      return state.retryMs === undefined
        ? 'connection lost; tRPC tries again'
        : `connection lost; next try in ${Math.round(state.retryMs)} ms`;
    default:
      return state satisfies never;
  }
}
