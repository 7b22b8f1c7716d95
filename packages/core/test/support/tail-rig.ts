import { TestMeter } from '../../../../test/support/observed.ts';
import { memoryBroker, memoryStore } from '../../src/memory/index.ts';
import { Gap, Subscriber } from '../../src/subscriber.ts';
import type { TailOptions } from '../../src/tail.ts';
import { Tails } from '../../src/tails.ts';
import { TOPIC } from './feed-rig.ts';
import { ManualClock } from './manual-clock.ts';
import { ScriptedLog } from './scripted-log.ts';

export const DELAYS: readonly number[] = [10, 20, 30, 40, 50];

/** The tails of one scripted log. */
export class TailRig {
  readonly store = memoryStore();
  readonly meter = new TestMeter();
  readonly clock = new ManualClock();
  readonly log = new ScriptedLog(memoryBroker({ store: this.store, meter: this.meter }).log);
  readonly tails = new Tails(this.log);

  subscriber(options: Partial<TailOptions> = {}): Subscriber {
    const all = {
      highWaterMark: 100,
      lingerMs: 0,
      clock: this.clock,
      retryDelaysMs: DELAYS,
      ...options,
    };
    return new Subscriber(this.tails.tail(TOPIC, all), this.tails.pages(all), all);
  }

  async live(options?: Partial<TailOptions>): Promise<Subscriber> {
    const subscriber = this.subscriber(options);
    await subscriber.positioned();
    subscriber.startLive();
    return subscriber;
  }

  append(...values: string[]): Promise<unknown> {
    return this.log.append(TOPIC, values);
  }
}

/** Waits until there may be more to take. */
export function ready(subscriber: Subscriber): Promise<void> {
  if (!subscriber.isWaiting()) return subscriber.fetch();
  return new Promise((resolve) => {
    subscriber.reader = { woken: resolve };
  });
}

/** Takes so many items: values, or `gap` and its reason. */
export async function take(subscriber: Subscriber, count: number): Promise<string[]> {
  const taken: string[] = [];
  while (taken.length < count) {
    const next = subscriber.take();
    if (next === undefined) await ready(subscriber);
    else taken.push(next instanceof Gap ? `gap ${next.loss}` : next.value);
  }
  return taken;
}
