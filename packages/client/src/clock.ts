/** Waits, as this library knows them. Tests bring their own. */
export interface FeedClock {
  /** Calls back once after `ms`. Returns what cancels it. */
  after(ms: number, callback: () => void): () => void;
  /** The time, in milliseconds since some moment. */
  now(): number;
}

export const systemClock: FeedClock = {
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
  now: () => Date.now(),
};
