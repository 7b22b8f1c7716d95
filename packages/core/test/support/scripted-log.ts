import { Moments } from '../../../../test/support/moments.ts';
import type { BrokerLog, Loss, Page, Position, Sink, Start } from '../../src/index.ts';
import { BrokerError } from '../../src/index.ts';

export const OUTAGE: BrokerError = new BrokerError('UNAVAILABLE', 'the store is away');

type Hook<Args extends unknown[]> = (...args: Args) => void | Promise<void>;

/**
 * A real log in front of which a test stands: at each point where the engine waits for it, the test may append, wait, or
 * throw. It changes no answer.
 */
export class ScriptedLog implements BrokerLog {
  readonly observer: BrokerLog['observer'];
  /** Called with the count of the call, from 1. */
  beforePage: Hook<[call: number, from: Start]> = () => {};
  /** Called when the log has answered, before the engine has the answer. */
  afterPage: Hook<[call: number, page: Page]> = () => {};
  beforeFollow: Hook<[call: number, from: Position]> = () => {};
  /** Called in place of a sink's `live`. */
  onLive: (call: number, live: () => void) => void = (_, live) => live();
  /** Called in place of a sink's `commits`. */
  onCommits: (pass: () => void) => void = (pass) => pass();
  pages = 0;
  /** Live reads started. */
  follows = 0;
  /** Live reads under way. */
  reads = 0;
  readonly #log: BrokerLog;
  readonly #moments = new Moments();
  readonly #current = new Set<(end: { error: unknown } | { loss: Loss | undefined }) => void>();

  constructor(log: BrokerLog) {
    this.#log = log;
    this.observer = log.observer;
  }

  /** Makes the live reads under way reject. */
  breakReads(error: unknown = OUTAGE): void {
    for (const end of this.#current) end({ error });
  }

  /** Makes the live reads under way end as if they had found a loss, or for no reason at all. */
  endReads(loss: Loss | undefined): void {
    for (const end of this.#current) end({ loss });
  }

  untilFollows(count: number): Promise<void> {
    return this.#moments.until(
      () => this.follows >= count,
      () => `${this.follows} live reads were started, not ${count}`,
    );
  }

  untilReads(count: number): Promise<void> {
    return this.#moments.until(
      () => this.reads === count,
      () => `${this.reads} live reads are under way, not ${count}`,
    );
  }

  untilPages(count: number): Promise<void> {
    return this.#moments.until(
      () => this.pages >= count,
      () => `${this.pages} pages were asked for, not ${count}`,
    );
  }

  append: BrokerLog['append'] = (...args) => this.#log.append(...args);
  bounds: BrokerLog['bounds'] = (...args) => this.#log.bounds(...args);

  page: BrokerLog['page'] = async (topic, from, limit, signal) => {
    this.pages += 1;
    const call = this.pages;
    this.#moments.tell();
    await this.beforePage(call, from);
    const page = await this.#log.page(topic, from, limit, signal);
    await this.afterPage(call, page);
    return page;
  };

  follow: BrokerLog['follow'] = async (topic, from, sink, signal) => {
    this.follows += 1;
    const call = this.follows;
    this.#moments.tell();
    await this.beforeFollow(call, from);
    this.reads += 1;
    this.#moments.tell();
    const cut = new AbortController();
    let cutBy: { error: unknown } | { loss: Loss | undefined } | undefined;
    const end = (how: { error: unknown } | { loss: Loss | undefined }): void => {
      cutBy = how;
      cut.abort();
    };
    this.#current.add(end);
    const heard: Sink = {
      live: () => this.onLive(call, () => sink.live()),
      commits: (commits) => this.onCommits(() => sink.commits(commits)),
    };
    try {
      const loss = await this.#log.follow(
        topic,
        from,
        heard,
        AbortSignal.any([signal, cut.signal]),
      );
      if (cutBy === undefined || signal.aborted) return loss;
      if ('error' in cutBy) throw cutBy.error;
      return cutBy.loss;
    } finally {
      this.#current.delete(end);
      this.reads -= 1;
      this.#moments.tell();
    }
  };
}
