import type { Attributes, Broker, BrokerLog, Meter } from '@brokerfeed/core';
import { type MemoryBrokerOptions, memoryBroker } from '@brokerfeed/core/memory';
import { Moments } from './moments.ts';

/** A meter that can be asked, and waited for. */
export class TestMeter implements Meter {
  readonly #counts = new Map<string, number>();
  readonly #moments = new Moments();

  count(name: string, by: number, attributes: Attributes = {}): void {
    const labels = Object.values(attributes);
    for (const key of [name, ...labels.map((label) => `${name} ${label}`)]) {
      this.#counts.set(key, this.of(key) + by);
    }
    this.#moments.tell();
  }

  record(): void {}

  /** The sum of a counter: `of('brokerfeed.feed.resumes')`, or of one label of it: `of('brokerfeed.feed.resumes trimmed')`. */
  of(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  /** Waits until the sum has come to `least`. */
  until(key: string, least: number): Promise<void> {
    return this.#moments.until(
      () => this.of(key) >= least,
      () => `${key} is ${this.of(key)}, not ${least}`,
    );
  }

  /** Waits until this many subscriptions stand, on whichever transport. */
  attached(count: number): Promise<void> {
    return this.until('brokerfeed.feed.resumes', count);
  }
}

/** A memory broker whose live reads can be counted and broken. */
export interface ObservedBroker extends Broker {
  readonly meter: TestMeter;
  /** Live reads under way. */
  readonly reads: number;
  /** Live reads started so far. */
  readonly started: number;
  untilReads(count: number): Promise<void>;
  /** Makes every read, live or not, under way or to come, fail as an outage does; `undefined` ends that. */
  breakReads(error: Error | undefined): void;
}

/** Makes a memory broker, and watches how its log is read. */
export function observedBroker(options: MemoryBrokerOptions = {}): ObservedBroker {
  const meter = new TestMeter();
  const moments = new Moments();
  const broker = memoryBroker({ meter, ...options });
  const inner = broker.log;
  let reads = 0;
  let started = 0;
  let outage: { readonly error: Error } | undefined;
  let breaking = new AbortController();
  const check = (): void => {
    if (outage !== undefined) throw outage.error;
  };
  const log: BrokerLog = {
    observer: inner.observer,
    append: (...args) => inner.append(...args),
    bounds: (...args) => inner.bounds(...args),
    async page(...args) {
      check();
      return inner.page(...args);
    },
    async follow(topic, from, sink, signal) {
      check();
      reads += 1;
      started += 1;
      moments.tell();
      try {
        const loss = await inner.follow(
          topic,
          from,
          sink,
          AbortSignal.any([signal, breaking.signal]),
        );
        if (!signal.aborted) check();
        return loss;
      } finally {
        reads -= 1;
        moments.tell();
      }
    },
  };
  return {
    name: broker.name,
    log,
    meter,
    get reads() {
      return reads;
    },
    get started() {
      return started;
    },
    untilReads: (count) =>
      moments.until(
        () => reads === count,
        () => `${reads} live reads, not ${count}`,
      ),
    breakReads(error) {
      outage = error && { error };
      if (outage !== undefined) {
        breaking.abort();
        breaking = new AbortController();
      }
    },
    close: () => broker.close(),
    [Symbol.asyncDispose]: () => broker.close(),
  };
}
