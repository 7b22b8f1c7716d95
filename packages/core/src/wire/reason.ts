/** Why a feed refused a resume token, or ended. */
export type FeedReason =
  /** 400: not a resume token, or of a later version. */
  | 'malformed'
  /** 400: longer than the feed's `maxIdLength`. */
  | 'too-long'
  /** 400: not signed by the feed's secrets for this topic and audience. */
  | 'signature'
  /** 400: past the end of the log. */
  | 'ahead'
  /** 400: the topic resolver answered something that is no topic, or the input cannot carry a token. */
  | 'topic'
  /** 410: entries after it are no longer retained. */
  | 'trimmed'
  /** 410: it names another incarnation of the log. */
  | 'epoch'
  /** 410: the log was rolled back and holds something else there. */
  | 'forked'
  /** 410: it was handed out inside a snapshot that was not finished, and this feed makes none. */
  | 'snapshot'
  /** 422: `onEntryError: 'end'` met an entry that it could not deliver. */
  | 'entry'
  /** 503: the log cannot be read now. */
  | 'unavailable'
  /** 503: the server is closing. */
  | 'closing';

/** An HTTP status that a feed ends with. */
export type FeedStatus = 400 | 410 | 422 | 503;

/** The HTTP status that stands for a reason. */
export const FEED_STATUS: Readonly<Record<FeedReason, FeedStatus>> = {
  malformed: 400,
  'too-long': 400,
  signature: 400,
  ahead: 400,
  topic: 400,
  trimmed: 410,
  epoch: 410,
  forked: 410,
  snapshot: 410,
  entry: 422,
  unavailable: 503,
  closing: 503,
};

/** What an error frame carries as `data.feed`. */
export interface FeedErrorData {
  readonly status: FeedStatus;
  readonly reason: FeedReason;
}
