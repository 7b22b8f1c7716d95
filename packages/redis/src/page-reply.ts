import {
  type Bounds,
  type Commit,
  type Entry,
  type Loss,
  NO_HEADERS,
  type Page,
  type Position,
} from '@brokerfeed/core';
import { readEntries, readMark, type StreamEntry } from './commit-codec.ts';
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
  ...commits: string[],
];

/** Makes a page of the page script's reply. */
export function readPage(reply: PageReply): Page {
  const [verdict, epoch, firstOrdinal, firstId, oldestId, lastOrdinal, lastId] = reply;
  const [, , , , , , , fromOrdinal, fromId, atTip, ...texts] = reply;
  // The last commit trimmed before one of a bare XADD left no trace: any id between the two says the same.
  const known = (id: string): string => (id === '' ? precedingId(oldestId) : id);
  const bounds: Bounds = {
    first: { epoch, id: known(firstId), ordinal: firstOrdinal },
    last: { epoch, id: lastId, ordinal: lastOrdinal },
  };
  if (verdict !== 'ok') return { verdict, bounds };
  const from: Position = { epoch, id: known(fromId), ordinal: fromOrdinal };
  const commits: Commit[] = [];
  let previous = from;
  for (const text of texts) {
    // Written by the page script.
    for (const entry of JSON.parse(text) as readonly StreamEntry[]) {
      if (!isNumbered(entry, previous.ordinal + 1)) {
        // Nothing was deleted here, so this is not the log that was read: someone set its counters.
        return commits.length === 0
          ? { verdict: 'forked', bounds }
          : { verdict, from, commits, atTip: false, bounds };
      }
      const commit = commitAfter(previous, entry);
      commits.push(commit);
      previous = commit.position;
    }
  }
  return { verdict, from, commits, atTip: atTip === 1, bounds };
}

/** Whether a commit can be the one of an ordinal: it says so, or says nothing. */
function isNumbered([, fields]: StreamEntry, ordinal: number): boolean {
  // Nearly always; the reading of a mark costs more.
  if (fields[0] === 'o' && Number(fields[1]) === ordinal) return true;
  const mark = readMark(fields);
  return mark === undefined || mark.ordinal === ordinal;
}

/** Makes the commit of a stream entry that is known to follow a position. */
export function commitAfter(previous: Position, [id, fields]: StreamEntry): Commit {
  const position: Position = { epoch: previous.epoch, id, ordinal: previous.ordinal + 1 };
  return {
    previous,
    position,
    entries: isPlain(fields) ? [plainEntry(fields)] : readEntries(fields),
  };
}

/** Whether fields are those of nearly all commits: a mark and one value. (That the mark is well-formed changes nothing.) */
function isPlain(fields: readonly string[]): boolean {
  return (
    fields.length === 8 &&
    fields[0] === 'o' &&
    fields[2] === 'p' &&
    fields[4] === 'e' &&
    fields[6] === 'v'
  );
}

function plainEntry(fields: readonly string[]): Entry {
  return { value: fields[7] as string, headers: NO_HEADERS };
}
