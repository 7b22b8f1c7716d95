import type { BrokerLog } from './broker.ts';
import { Pages } from './pages.ts';
import { Tail, type TailOptions } from './tail.ts';

/** The tails and page reads of one log in this process, shared by every feed on it. */
export class Tails {
  readonly #log: BrokerLog;
  readonly #tails = new Map<string, Tail>();
  #pages: Pages | undefined;

  constructor(log: BrokerLog) {
    this.#log = log;
  }

  /** The tail of a topic, started if there is none. Whoever gets it joins it in the same turn. */
  tail(topic: string, options: TailOptions): Tail {
    let tail = this.#tails.get(topic);
    if (tail === undefined) {
      const fresh = new Tail(this.#log, topic, options, () => {
        if (this.#tails.get(topic) === fresh) this.#tails.delete(topic);
      });
      tail = fresh;
      this.#tails.set(topic, tail);
    }
    return tail;
  }

  pages(options: Pick<TailOptions, 'clock' | 'retryDelaysMs'>): Pages {
    this.#pages ??= new Pages(this.#log, { clock: options.clock, delaysMs: options.retryDelaysMs });
    return this.#pages;
  }

  /** The tails that there are now. */
  get all(): readonly Tail[] {
    return [...this.#tails.values()];
  }

  /** How many topics are read live now. */
  get size(): number {
    return this.#tails.size;
  }
}

const tailsByLog = new WeakMap<BrokerLog, Tails>();

/** Answers the one {@link Tails} of a log in this process. */
export function tailsOf(log: BrokerLog): Tails {
  let tails = tailsByLog.get(log);
  if (tails === undefined) {
    tails = new Tails(log);
    tailsByLog.set(log, tails);
  }
  return tails;
}
