/** Waits, as this library knows them. Tests bring their own. */
export interface FeedClock {
  /** Calls back once after `ms`. Returns what cancels it. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: FeedClock = {
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};
