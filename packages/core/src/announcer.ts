import type { BrokerError } from './errors.ts';

/*
 * The second, smaller seam: values that are passed on and never stored. A broker that has one carries announcements to
 * every instance of the service; what happens to them there (rings, lag, decoding) lives above it, in `watch`.
 */

/** A value that was announced, shared by all who hear it. */
export interface Announcement {
  readonly kind: 'announcement';
  readonly topic: string;
  readonly value: string;
}

/** Hears the announcements of a topic. Its methods never throw and never wait. */
export interface AnnouncementReceiver {
  receive(announcement: Announcement): void;
  /** The connection was lost for a while: nobody can tell how many announcements were. */
  interrupted(): void;
  /** There will be no more: the broker was closed, or cannot go on. Nothing is called after it. */
  end(error: BrokerError): void;
}

/** Carries announcements: at most once, in the order in which one instance made them, to whoever listens at that moment. */
export interface Announcer {
  /**
   * Passes a value on. Returns without waiting for anybody, and no receiver can make it fail; what cannot be sent is
   * counted and lost. A function is called only where somebody may hear, and its announcement costs no more than that
   * look otherwise. Throws `CLOSED` after the broker's `close()`.
   */
  announce(topic: string, value: string | (() => string)): void;
  /**
   * Adds a receiver. Resolves, with what removes it, once every announcement that is made from then on, on any instance,
   * comes to it. Rejects with a `BrokerError` as a read does.
   */
  listen(topic: string, receiver: AnnouncementReceiver): Promise<() => void>;
}
