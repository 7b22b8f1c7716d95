import type { Announcer } from './announcer.ts';
import type { Broker } from './broker.ts';
import { BrokerError } from './errors.ts';

/**
 * Passes a value to whoever watches the topic now, on every instance, and stores nothing: for presence, cursors, typing.
 * At most once, and never waits for a watcher. Give a function where the text costs something to make: it is called only
 * if somebody may hear.
 *
 * Throws a `BrokerError`: `CLOSED`, `VALUE_INVALID` for what is no well-formed text, `TOPIC_INVALID` where it would have
 * been sent, `UNSUPPORTED` where the broker carries no announcements, `UNAVAILABLE` where it seals and has no keys now.
 */
export function announce(broker: Broker, topic: string, value: string | (() => string)): void {
  announcerOf(broker).announce(topic, value);
}

/** Answers the announcer of a broker. Throws `UNSUPPORTED` where it has none. */
export function announcerOf(broker: Broker): Announcer {
  if (broker.announcer !== undefined) return broker.announcer;
  throw new BrokerError('UNSUPPORTED', `the ${broker.name} broker carries no announcements`);
}
