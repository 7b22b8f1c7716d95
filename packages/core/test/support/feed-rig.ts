import { TestMeter } from '../../../../test/support/observed.ts';
import { Feed, type FeedFrame, type FeedOptions, type FeedReader } from '../../src/index.ts';
import { type MemoryBrokerOptions, memoryBroker, memoryStore } from '../../src/memory/index.ts';
import { tailsOf } from '../../src/tails.ts';
import { type LogLine, logLines } from './log-lines.ts';
import { ManualClock } from './manual-clock.ts';
import { ScriptedLog } from './scripted-log.ts';

export const TOPIC = 'orders';
export const SECRET = 'a secret of sixteen bytes and more';

/** Waits for so many turns of the microtask queue: to be at one point after another of what runs beside the test. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await null;
}

/** Runs all microtasks there are. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

type RigOptions<A extends object> = FeedOptions<A> & { readonly broker?: MemoryBrokerOptions };

interface Subscription {
  readonly reader: FeedReader;
  readonly abort: AbortController;
  /** Reads so many frames. */
  take(count: number): Promise<readonly FeedFrame[]>;
  /** Reads so many frames and answers their values. */
  values(count: number): Promise<readonly unknown[]>;
}

/** A topic in memory and a feed on it, with a clock and a log in the hands of the test. */
export class FeedRig<A extends object = object> {
  readonly store = memoryStore();
  readonly meter = new TestMeter();
  readonly clock = new ManualClock();
  readonly lines: readonly LogLine[];
  readonly log: ScriptedLog;
  readonly feed: Feed<A>;
  readonly close: () => Promise<void>;

  constructor(options: RigOptions<A> = {}) {
    const { broker: brokerOptions, ...feedOptions } = options;
    const { logger, lines } = logLines();
    this.lines = lines;
    const broker = memoryBroker({
      store: this.store,
      meter: this.meter,
      logger,
      ...brokerOptions,
    });
    this.close = () => broker.close();
    this.log = new ScriptedLog(broker.log);
    this.feed = this.another(feedOptions as FeedOptions<A>);
  }

  /** Another feed on the same log. */
  another<B extends object = A>(options: FeedOptions<B>): Feed<B> {
    return new Feed<B>(this.log, { clock: this.clock, lingerMs: 0, secret: SECRET, ...options });
  }

  async append(...values: unknown[]): Promise<void> {
    await this.log.append(
      TOPIC,
      values.map((value) => JSON.stringify(value)),
    );
  }

  async appendEach(...values: unknown[]): Promise<void> {
    for (const value of values) await this.append(value);
  }

  trim(keepCommits: number): void {
    this.store.trim(TOPIC, keepCommits);
  }

  drop(): void {
    this.store.drop(TOPIC);
  }

  /** Live reads of this log that have members or linger. */
  get tails(): number {
    return tailsOf(this.log).size;
  }

  open(lastEventId?: unknown, args?: A, feed: Feed<A> = this.feed): Promise<Subscription> {
    return subscribe(feed, lastEventId, args);
  }
}

/** Opens a subscription of the topic. */
export async function subscribe<A extends object>(
  feed: Feed<A>,
  lastEventId?: unknown,
  args?: A,
): Promise<Subscription> {
  const abort = new AbortController();
  const reader = await feed.open({
    topic: TOPIC,
    lastEventId,
    // Where a test gives none, its feed looks at none.
    args: args ?? ({} as A),
    signal: abort.signal,
  });
  const take = async (count: number): Promise<readonly FeedFrame[]> => {
    const frames: FeedFrame[] = [];
    while (frames.length < count) {
      const frame = await reader.next();
      if (frame === undefined) throw new Error(`the feed ended after ${frames.length} frames`);
      frames.push(frame);
    }
    return frames;
  };
  const values = async (count: number) => (await take(count)).map((frame) => frame.value);
  return { reader, abort, take, values };
}
