import { type Broker, Feed, type FeedReader, FeedRefusal } from '@brokerfeed/core';
import { FaultRecord, type FaultSnapshot } from './faults-record.ts';

/** A subscriber of a fault run, whatever it is connected by. */
export interface FaultSubscriber {
  readonly record: FaultRecord;
  /** Connects, or comes back with the newest token that it got. */
  connect(): void;
  /** Leaves, as a client without a network does. */
  leave(): void;
  /** Stays connected and takes nothing, until what it returns is called. Of those who can. */
  pause?(): () => void;
  /** Leaves for good. Resolves when nothing of it is left. */
  close(): Promise<void>;
}

/** How feeds of a fault run are set up: every subscriber sees where it stands, and the ring is soon outrun. */
const FEED = {
  from: 'earliest',
  control: true,
  highWaterMark: 8,
  secret: 'the secret of all fault runs',
} as const;

/** Makes subscribers on a feed of each broker, half of them with `onGap`, without any transport. */
export function feedSubscribers(
  brokers: readonly Broker[],
  topic: string,
  count: number,
): FaultSubscriber[] {
  const feeds = brokers.map((broker) => [
    new Feed(broker, { ...FEED, onGap: ({ gap }): FaultSnapshot => ({ gap: gap.reason }) }),
    new Feed(broker, FEED),
  ]);
  return Array.from({ length: count }, (_, nth) => {
    const told = nth % 2 === 0 ? 'by snapshot' : 'by refusal';
    const record = new FaultRecord(`subscriber ${nth} (${told})`);
    // Each connection may go to another instance, as behind a load balancer.
    const feed = (connection: number): Feed =>
      feeds[(connection + (nth >> 1)) % feeds.length]?.[nth % 2] as Feed;
    return new FeedSubscriber(record, feed, topic);
  });
}

class FeedSubscriber implements FaultSubscriber {
  readonly record: FaultRecord;
  readonly #feed: (connection: number) => Feed;
  readonly #topic: string;
  #connections = 0;
  #left = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #paused: Promise<void> | undefined;
  #resume: () => void = () => {};

  constructor(record: FaultRecord, feed: (connection: number) => Feed, topic: string) {
    this.record = record;
    this.#feed = feed;
    this.#topic = topic;
  }

  connect(): void {
    const left = new AbortController();
    this.#left = left;
    this.#running = this.#running.then(() => this.#run(left.signal));
  }

  leave(): void {
    this.#left.abort();
    this.#resume();
  }

  pause(): () => void {
    this.#paused = new Promise((resolve) => {
      this.#resume = () => {
        this.#paused = undefined;
        resolve();
      };
    });
    return this.#resume;
  }

  async close(): Promise<void> {
    this.leave();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const reader = await this.#open(signal);
        this.record.connected();
        for (;;) {
          await this.#paused;
          const frame = await reader.next();
          if (frame === undefined) return;
          this.record.frame(frame.token, frame.value);
        }
      } catch (error) {
        if (signal.aborted) return;
        const reason = error instanceof FeedRefusal ? error.reason : String(error);
        if (!this.record.ended(reason)) return;
      }
    }
  }

  #open(signal: AbortSignal): Promise<FeedReader> {
    const feed = this.#feed(this.#connections);
    this.#connections += 1;
    return feed.open({ topic: this.#topic, lastEventId: this.record.token, args: {}, signal });
  }
}
