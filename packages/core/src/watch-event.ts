import type { Announcement } from './announcer.ts';
import type { BrokerError } from './errors.ts';
import type { EntrySlot, FeedEntry } from './slot.ts';

/** An entry that was appended, and is in the log. One object for all watches of the process. */
export interface WatchedEntry {
  readonly kind: 'entry';
  readonly entry: FeedEntry;
}

/** Something happened: an entry was appended, or a value announced. */
export type WatchEvent = WatchedEntry | Announcement;

/** The news, between the events on either side of it, that some are missing. The watch goes on. */
export interface WatchLag {
  readonly kind: 'lagged';
  /**
   * How many events were dropped here; undefined where nobody can tell: more came at once than the shared live read holds,
   * the log was trimmed under it, replaced or rolled back, or the connection that carries announcements was lost for a
   * while.
   */
  readonly missed: number | undefined;
}

/** What a watch holds, in order. */
export type WatchItem = WatchEvent | WatchLag;

/** The watch is over, and everything it held was taken. */
export interface WatchClosed {
  readonly kind: 'closed';
  /** Why, where neither the watch nor its broker was closed: the log cannot be read any more. */
  readonly error?: BrokerError;
}

/** Nothing is held at this moment. */
export interface WatchEmpty {
  readonly kind: 'empty';
}

/** Nothing came in the time that was given. */
export interface WatchTimeout {
  readonly kind: 'timeout';
}

const EVENTS = {};

/** Answers the event of an entry, made once for all watches. */
export function watchedEntry(slot: EntrySlot): WatchedEntry {
  return slot.memo(EVENTS, () => Object.freeze({ kind: 'entry', entry: slot }));
}
