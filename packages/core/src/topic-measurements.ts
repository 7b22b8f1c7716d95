import type { Broker, BrokerLog } from './broker.ts';
import { type Clock, systemClock } from './clock.ts';
import { integerOption } from './option-check.ts';
import type { Tail } from './tail.ts';
import { tailsOf } from './tails.ts';

/** The options of {@link TopicMeasurements}. */
export interface MeasureTopicsOptions {
  /**
   * How often each topic is measured, in milliseconds: one small read of the log each time.
   * @default 10000
   */
  readonly everyMs?: number;
  /** @default the system's */
  readonly clock?: Clock;
}

/** What was last measured of a topic. */
export interface TopicMeasurement {
  /**
   * How long a client may be away and still find all it missed, in milliseconds. Never more than that: it is known to
   * `everyMs`, or to one part in 128 of it, and no further back than the topic has been measured.
   */
  readonly retainedMs: number;
  /** Commits that the log has and the live read of this process has not got. Grows where that hangs. */
  readonly lag: number;
}

/** When a topic had how many commits. */
interface Sample {
  readonly at: number;
  readonly ordinal: number;
}

interface History {
  readonly epoch: string;
  /** Oldest first. From each of them the log can be read on. */
  readonly samples: Sample[];
  /** The least time between two of them. */
  stepMs: number;
  measured: TopicMeasurement;
}

/** Samples kept of a topic. Once there are as many, every other one goes, and new ones are kept half as often. */
const MAX_SAMPLES = 512;

const LONGEST_MS = 2 ** 31 - 1;

/**
 * Measures the topics that are followed in this process, again and again until it is closed: how far back their logs go in
 * time, which no log says by itself, and how far their live reads are behind.
 */
export class TopicMeasurements {
  readonly #log: BrokerLog;
  readonly #clock: Clock;
  readonly #everyMs: number;
  #histories = new Map<string, History>();
  #cancel: () => void = () => {};
  #closed = false;

  /** Starts at once. Give it what the feeds were given. Throws `OPTION_INVALID`. */
  constructor(source: Broker | BrokerLog, options: MeasureTopicsOptions = {}) {
    this.#log = 'log' in source ? source.log : source;
    this.#clock = options.clock ?? systemClock;
    this.#everyMs = integerOption('everyMs', options.everyMs, 10_000, 1, LONGEST_MS);
    void this.#round();
  }

  /** Answers what was last measured; undefined where the topic is not followed here. */
  of(topic: string): TopicMeasurement | undefined {
    return this.#histories.get(topic)?.measured;
  }

  /** Stops measuring. Idempotent. */
  close(): void {
    this.#closed = true;
    this.#cancel();
  }

  async #round(): Promise<void> {
    const tails = tailsOf(this.#log).all;
    const followed = new Set(tails.map(({ topic }) => topic));
    for (const topic of this.#histories.keys()) {
      if (!followed.has(topic)) this.#histories.delete(topic);
    }
    for (const tail of tails) await this.#measure(tail);
    if (!this.#closed) this.#cancel = this.#clock.after(this.#everyMs, () => void this.#round());
  }

  async #measure(tail: Tail): Promise<void> {
    let bounds: Awaited<ReturnType<BrokerLog['bounds']>>;
    try {
      bounds = await this.#log.bounds(tail.topic);
    } catch {
      return; // an outage is told by the tail
    }
    const at = this.#clock.now();
    const { first, last } = bounds;
    let history = this.#histories.get(tail.topic);
    if (history === undefined || history.epoch !== last.epoch) {
      history = { epoch: last.epoch, samples: [], stepMs: 0, measured: { retainedMs: 0, lag: 0 } };
      this.#histories.set(tail.topic, history);
    }
    // Whoever left at the time of the oldest sample had got this much, and finds what follows.
    while ((history.samples[0]?.ordinal ?? last.ordinal) < first.ordinal) history.samples.shift();
    sample(history, { at, ordinal: last.ordinal });
    const retainedMs = at - (history.samples[0]?.at ?? at);
    // Read after the bounds, so that what comes meanwhile is no lag.
    const tip = tail.tip;
    const lag =
      tip?.epoch === last.epoch
        ? Math.max(0, last.ordinal - tip.ordinal)
        : last.ordinal - first.ordinal;
    history.measured = { retainedMs, lag };
    const { meter } = this.#log.observer;
    meter.record('brokerfeed.topic.retained', retainedMs / 1_000);
    meter.record('brokerfeed.tail.lag', lag);
  }
}

function sample(history: History, fresh: Sample): void {
  const { samples } = history;
  if (fresh.at - (samples.at(-1)?.at ?? Number.NEGATIVE_INFINITY) < history.stepMs) return;
  samples.push(fresh);
  if (samples.length < MAX_SAMPLES) return;
  samples.splice(0, samples.length, ...samples.filter((_, index) => index % 2 === 0));
  history.stepMs = (samples[1] as Sample).at - (samples[0] as Sample).at;
}
