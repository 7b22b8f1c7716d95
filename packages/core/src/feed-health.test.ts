import { expect, test } from 'vitest';
import { observedBroker } from '../../../test/support/observed.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import type { BrokerLog } from './broker.ts';
import { Feed } from './feed.ts';
import { feedHealth } from './feed-health.ts';
import { memoryBroker } from './memory/index.ts';

test('a topic counts while it is followed, and as stalled from the break of its live read until one stands again', async () => {
  await using broker = observedBroker();
  const clock = new ManualClock();
  expect(feedHealth(broker)).toEqual({ topics: 0, stalled: 0, stalledMs: 0 });

  const feed = new Feed(broker, { clock, lingerMs: 0, retryDelaysMs: [1_000, 2_000] });
  const left = new AbortController();
  const open = (topic: string) =>
    feed.open({ topic, lastEventId: undefined, args: {}, signal: left.signal });
  await Promise.all([open('orders'), open('invoices')]);
  while (feedHealth(broker).stalled > 0) await new Promise(setImmediate);
  expect(feedHealth(broker.log)).toEqual({ topics: 2, stalled: 0, stalledMs: 0 });

  broker.breakReads(new Error('gone'));
  await clock.untilWait(1_000);
  clock.advance(1_000);
  await clock.untilWait(2_000);
  clock.advance(500);
  expect(feedHealth(broker)).toEqual({ topics: 2, stalled: 2, stalledMs: 1_500 });

  broker.breakReads(undefined);
  clock.advance(1_500);
  while (feedHealth(broker).stalled > 0) await new Promise(setImmediate);
  expect(feedHealth(broker)).toEqual({ topics: 2, stalled: 0, stalledMs: 0 });
  left.abort();
  expect(feedHealth(broker).topics).toBe(0);
});

test('a live read that has not come about is stalled', async () => {
  await using broker = memoryBroker();
  const { observer } = broker.log;
  const never = (): Promise<never> => new Promise(() => {});
  const log: BrokerLog = { observer, append: never, page: never, follow: never, bounds: never };
  const clock = new ManualClock();
  const left = new AbortController();
  const feed = new Feed(log, { clock, lingerMs: 0 });
  const opened = feed.open({ topic: 'orders', lastEventId: '', args: {}, signal: left.signal });
  // What it waits for comes a few turns later.
  while (feedHealth(log).topics === 0) await null;
  clock.advance(700);
  expect(feedHealth(log).stalled).toBe(1);
  expect(feedHealth(log).stalledMs).toBeGreaterThanOrEqual(700);
  left.abort();
  await opened.catch(() => {});
});
