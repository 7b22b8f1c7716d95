import type { Bounds, Commit, Loss, Page, Position } from '@brokerfeed/core';
import { readEntries, type StreamEntry } from './commit-codec.ts';
import { precedingId } from './stream-id.ts';

/** What the page script answers; it says what is what. */
export type PageReply = readonly [
  verdict: 'ok' | Loss,
  epoch: string,
  firstOrdinal: number,
  firstId: string,
  oldestId: string,
  lastOrdinal: number,
  lastId: string,
  fromOrdinal: number,
  fromId: string,
  atTip: 0 | 1,
  commits: string,
];

/** Makes a page of the page script's reply. */
export function readPage(reply: PageReply): Page {
  const [verdict, epoch, firstOrdinal, firstId, oldestId, lastOrdinal, lastId] = reply;
  const [, , , , , , , fromOrdinal, fromId, atTip, commitsText] = reply;
  // The last commit trimmed before one of a bare XADD left no trace: any id between the two says the same.
  const known = (id: string): string => (id === '' ? precedingId(oldestId) : id);
  const bounds: Bounds = {
    first: { epoch, id: known(firstId), ordinal: firstOrdinal },
    last: { epoch, id: lastId, ordinal: lastOrdinal },
  };
  if (verdict !== 'ok') return { verdict, bounds };
  const from: Position = { epoch, id: known(fromId), ordinal: fromOrdinal };
  // Written by the page script.
  const entries: readonly StreamEntry[] = commitsText === '' ? [] : JSON.parse(commitsText);
  let previous = from;
  const commits = entries.map((entry): Commit => {
    const commit = commitAfter(previous, entry);
    previous = commit.position;
    return commit;
  });
  return { verdict, from, commits, atTip: atTip === 1, bounds };
}

/** Makes the commit of a stream entry that is known to follow a position. */
export function commitAfter(previous: Position, [id, fields]: StreamEntry): Commit {
  const position: Position = { epoch: previous.epoch, id, ordinal: previous.ordinal + 1 };
  return { previous, position, entries: readEntries(fields) };
}
