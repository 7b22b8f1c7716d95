import { isBrokerError } from './errors.ts';
import { FEED_STATUS, type FeedErrorData, type FeedReason } from './wire/reason.ts';

const SENTENCES: Record<FeedReason, string> = {
  malformed: 'the resume token is malformed',
  'too-long': 'the resume token is too long',
  signature: 'the resume token was not issued by this feed',
  ahead: 'the resume token lies past the end of the log',
  topic: 'the feed has no such topic',
  trimmed: 'entries after the resume token are no longer retained',
  epoch: 'the resume token belongs to an earlier log',
  forked: 'the log was rolled back behind the resume token',
  snapshot: 'the resume token lies inside a snapshot',
  entry: 'an entry cannot be delivered',
  unavailable: 'the log cannot be read now',
  closing: 'the server is closing',
};

/** Ends a feed, or refuses to start one. The message tells a peer nothing but the reason. */
export class FeedRefusal extends Error {
  override readonly name = 'FeedRefusal';
  readonly reason: FeedReason;
  readonly status: FeedErrorData['status'];

  constructor(reason: FeedReason, options?: ErrorOptions) {
    super(SENTENCES[reason], options);
    this.reason = reason;
    this.status = FEED_STATUS[reason];
  }
}

/** Turns what a log or tail rejected with into what a peer is told. Errors of callbacks pass through. */
export function toRefusal(error: unknown): unknown {
  if (isBrokerError(error, 'CLOSED')) return new FeedRefusal('closing', { cause: error });
  if (isBrokerError(error, 'TOPIC_INVALID')) return new FeedRefusal('topic', { cause: error });
  if (isBrokerError(error)) return new FeedRefusal('unavailable', { cause: error });
  return error;
}
