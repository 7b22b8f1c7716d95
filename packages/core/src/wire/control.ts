/**
 * The value of a control frame, sent only by a feed whose `control` option is on. Each is tracked like any other frame,
 * so that a client that loses its socket after it resumes from there.
 *
 * - `attached`: the subscription stands; nothing after this frame's token is missed. Its standing follows.
 * - `position`: nothing was delivered for a while, yet the position moved on: the token is a fresher one.
 */
export interface FeedControl {
  readonly feed: 'attached' | 'position' | FeedStanding;
}

/**
 * How a subscription stands. It is told when it begins and whenever it changes, so that the newest one told holds.
 *
 * - `catching-up`: what was missed is on its way, from the log or in a snapshot.
 * - `live`: all that there was has been sent; what is appended from now on comes as it is appended.
 * - `outage`: the log cannot be read now; entries will come when it can.
 */
export type FeedStanding = 'catching-up' | 'live' | 'outage';
