import { announcerOf } from './announce.ts';
import type { AnnouncementReceiver } from './announcer.ts';
import type { Broker } from './broker.ts';
import { Closing } from './closing.ts';
import { WatchEntries } from './watch-entries.ts';
import type { ResolvedWatchOptions } from './watch-options.ts';
import { WatchQueue } from './watch-queue.ts';

/** Where the events of one watch come from: the tail of its topic, and the announcer. */
export class WatchSources {
  readonly queue: WatchQueue;
  readonly #broker: Broker;
  readonly #topic: string;
  readonly #options: ResolvedWatchOptions;
  readonly closing: Closing = new Closing();

  constructor(broker: Broker, topic: string, options: ResolvedWatchOptions) {
    this.#broker = broker;
    this.#topic = topic;
    this.#options = options;
    const { meter } = broker.log.observer;
    this.queue = new WatchQueue(
      options.capacity,
      (missed) =>
        meter.count('brokerfeed.watch.lagged', 1, {
          missed: missed === undefined ? 'unknown' : 'counted',
        }),
      () => this.closing.close(),
    );
  }

  /** Resolves when both stand. The announcer first: it is the one that keeps nothing. */
  async open(): Promise<void> {
    const { log } = this.#broker;
    const { only } = this.#options;
    const hears =
      only === undefined ? this.#broker.announcer !== undefined : only === 'announcements';
    if (hears) {
      const announcer = announcerOf(this.#broker);
      this.closing.whenClosed(await announcer.listen(this.#topic, this.#receiver()));
    }
    if (only === 'announcements' || this.closing.closed) return;
    const entries = new WatchEntries(log, this.#topic, this.#options, this.queue);
    this.closing.whenClosed(() => entries.leave());
    await entries.stands();
  }

  #receiver(): AnnouncementReceiver {
    return {
      receive: (announcement) => this.queue.push(announcement),
      interrupted: () => this.queue.lag(undefined),
      end: (error) => this.queue.end(error),
    };
  }
}
