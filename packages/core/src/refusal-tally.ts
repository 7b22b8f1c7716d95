import type { Clock } from './clock.ts';
import type { Observer } from './observer.ts';

/** One warning per stage in this time, in milliseconds; the others in between are at debug. */
const WARN_EVERY_MS = 10_000;

/** Where an entry failed on its way to a subscriber. */
export type EntryStage = 'decode' | 'prepare' | 'filter' | 'map' | 'encode';

/** Counts the entries of one topic that could not be delivered, and keeps the log readable while a producer misbehaves. */
export class RefusalTally {
  readonly #topic: string;
  readonly #observer: Observer;
  readonly #clock: Clock;
  readonly #stages = new Map<EntryStage, { count: number; quietUntil: number }>();

  constructor(topic: string, observer: Observer, clock: Clock) {
    this.#topic = topic;
    this.#observer = observer;
    this.#clock = clock;
  }

  add(stage: EntryStage, generation: number, index: number, error: unknown): void {
    const now = this.#clock.now();
    const tally = this.#stages.get(stage) ?? { count: 0, quietUntil: 0 };
    this.#stages.set(stage, tally);
    tally.count += 1;
    this.#observer.meter.count('brokerfeed.feed.refused', 1, { stage });
    const fields = { topic: this.#topic, stage, generation, index, count: tally.count, err: error };
    const level = now < tally.quietUntil ? 'debug' : 'warn';
    if (level === 'warn') tally.quietUntil = now + WARN_EVERY_MS;
    this.#observer.logger[level](fields, 'brokerfeed.feed.refused');
  }

  /** Logs what was counted, if anything, when the topic's last subscriber has left. */
  summarise(): void {
    for (const [stage, { count }] of this.#stages) {
      this.#observer.logger.info(
        { topic: this.#topic, stage, count },
        'brokerfeed.feed.refused.total',
      );
    }
    this.#stages.clear();
  }
}
