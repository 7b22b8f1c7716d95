import { BrokerError, type BrokerLog, type Clock } from '@brokerfeed/core';

/** Time that passes when a law says so. Waits of no time end in the next turn. */
export class LawClock implements Clock {
  #now = 0;
  readonly #timers = new Set<{ readonly due: number; readonly ring: () => void }>();

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { due: this.#now + ms, ring: callback };
    this.#timers.add(timer);
    if (ms === 0) setImmediate(() => this.#ring(timer));
    return () => this.#timers.delete(timer);
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers]) if (timer.due <= this.#now) this.#ring(timer);
  }

  #ring(timer: { readonly ring: () => void }): void {
    if (this.#timers.delete(timer as never)) timer.ring();
  }
}

/** A log whose live reads can be counted, and broken as a lost connection does. */
export class BreakableLog implements BrokerLog {
  readonly observer: BrokerLog['observer'];
  readonly #log: BrokerLog;
  readonly #reads = new Set<AbortController>();

  constructor(log: BrokerLog) {
    this.observer = log.observer;
    this.#log = log;
  }

  /** Live reads under way. */
  get reads(): number {
    return this.#reads.size;
  }

  breakReads(): void {
    for (const read of this.#reads) read.abort();
  }

  append: BrokerLog['append'] = (...args) => this.#log.append(...args);
  page: BrokerLog['page'] = (...args) => this.#log.page(...args);
  bounds: BrokerLog['bounds'] = (...args) => this.#log.bounds(...args);

  follow: BrokerLog['follow'] = async (topic, from, sink, signal) => {
    const broken = new AbortController();
    this.#reads.add(broken);
    try {
      const loss = await this.#log.follow(
        topic,
        from,
        sink,
        AbortSignal.any([signal, broken.signal]),
      );
      if (loss === undefined && !signal.aborted)
        throw new BrokerError('UNAVAILABLE', 'the live read was broken by the law');
      return loss;
    } finally {
      this.#reads.delete(broken);
    }
  };
}
