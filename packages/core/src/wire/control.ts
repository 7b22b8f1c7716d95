/**
 * The value of a control frame, sent only by a feed whose `control` option is on. Each is tracked like any other frame,
 * so that a client that loses its socket after it resumes from there.
 *
 * - `attached`: the subscription stands; nothing after this frame's token is missed.
 * - `position`: nothing was delivered for a while, yet the position moved on: the token is a fresher one.
 * - `outage`: the log cannot be read now; entries will come when it can. `live`: it can again.
 */
export interface FeedControl {
  readonly feed: 'attached' | 'position' | 'outage' | 'live';
}
