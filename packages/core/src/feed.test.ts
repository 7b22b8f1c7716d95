import { describe, expect, test } from 'vitest';
import { FeedRig } from '../test/support/feed-rig.ts';
import { OUTAGE } from '../test/support/scripted-log.ts';
import { BrokerError, Feed } from './index.ts';
import { memoryBroker } from './memory/index.ts';

describe('a log that cannot be read', () => {
  test('refuses with 503 after its tries', async () => {
    const rig = new FeedRig({ retryDelaysMs: [10] });
    rig.log.beforePage = () => {
      throw OUTAGE;
    };
    const opening = rig.open();
    const refused = expect(opening).rejects.toMatchObject({ status: 503, reason: 'unavailable' });
    await rig.clock.untilWait(10);
    rig.clock.advance(10);
    await refused;
    expect(rig.tails).toBe(0);
  });

  test('refuses with 503 whatever it rejected with', async () => {
    const rig = new FeedRig({ retryDelaysMs: [] });
    rig.log.beforePage = () => {
      throw new TypeError('reading undefined');
    };
    await expect(rig.open()).rejects.toMatchObject({ status: 503, reason: 'unavailable' });
  });

  test('that was closed refuses as closing, and ends who is there', async () => {
    const rig = new FeedRig();
    const { reader } = await rig.open();
    const next = reader.next();
    await rig.close();
    await expect(next).rejects.toMatchObject({ status: 503, reason: 'closing' });
    expect(await reader.next()).toBeUndefined();
    await expect(rig.open()).rejects.toMatchObject({ status: 503, reason: 'closing' });
    expect(rig.tails).toBe(0);
  });
});

test.each([undefined, null, '', 7, {}, '\uD800', 'x'.repeat(513)])(
  'a topic that is none is refused: %j',
  async (topic) => {
    const rig = new FeedRig();
    const request = {
      topic,
      lastEventId: undefined,
      args: {},
      signal: new AbortController().signal,
    };
    await expect(rig.feed.open(request)).rejects.toMatchObject({ status: 400, reason: 'topic' });
    expect(rig.log.pages).toBe(0);
  },
);

test('a feed is made of a broker or its log, and of nothing else', () => {
  expect(() => new Feed(memoryBroker())).not.toThrow();
  expect(() => new Feed(memoryBroker().log)).not.toThrow();
  for (const odd of [undefined, null, {}, { log: {} }, 'redis']) {
    // What a caller without types may pass.
    expect(() => new Feed(odd as never)).toThrow(BrokerError);
  }
});
