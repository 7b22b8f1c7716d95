import type { Broker, BrokerLog } from './broker.ts';
import { tailsOf } from './tails.ts';

/** How the live reads of a log stand in this process. */
export interface FeedHealth {
  /** Topics that somebody follows. */
  readonly topics: number;
  /** Those whose live read does not stand: it broke, or has not come about yet. */
  readonly stalled: number;
  /** For how long the longest of these has not stood, in milliseconds; 0 without any. */
  readonly stalledMs: number;
}

/**
 * Tells whether the feeds on a broker make progress in this process, for a readiness probe. Give it what the feeds were
 * given.
 *
 * A connection to the store that is open says nothing about that: a reader may hang on one while appends succeed on
 * another. A broker gives up a read that is silent for too long (on Redis, `checkMs + replyTimeoutMs`); from then on it
 * counts as stalled, until one stands again. Asks nobody: where nobody follows a topic, there is nothing to tell.
 */
export function feedHealth(source: Broker | BrokerLog): FeedHealth {
  const tails = tailsOf('log' in source ? source.log : source).all;
  const stalledMs = tails.flatMap((tail) => tail.stalledMs ?? []);
  const longest = stalledMs.reduce((most, ms) => Math.max(most, ms), 0);
  return { topics: tails.length, stalled: stalledMs.length, stalledMs: longest };
}
