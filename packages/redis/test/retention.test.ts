import { expect, test } from 'vitest';
import { openTopic } from './support.ts';

// What an append's own retention is on Redis. The laws that all brokers share are in @brokerfeed/conformance.

test('a bound that an append leaves out is the broker’s own', async () => {
  const retention = { maxEntries: 2, maxAgeMs: 60_000, trim: 'exact' } as const;
  await using topic = openTopic({ retention });
  const { client, log, key } = topic;
  const [seconds] = await client.time();
  const longAgo = (Number(seconds) - 120) * 1000;
  for (let seq = 0; seq < 3; seq += 1) await client.xadd(key, `${longAgo}-${seq}`, 'v', 'old');
  await log.append(topic.topic, 'a', { retention: { maxAgeMs: 3_600_000, maxEntries: 4 } });
  expect(await topic.values('earliest')).toEqual(['old', 'old', 'old', 'a']);
  await log.append(topic.topic, 'b', { retention: { maxAgeMs: 3_600_000 } });
  expect(await topic.values('earliest')).toEqual(['a', 'b']);
  await client.del(key);
  await client.xadd(key, `${longAgo}-0`, 'v', 'old');
  for (const value of ['a', 'b', 'c']) {
    await log.append(topic.topic, value, { retention: { maxEntries: 10 } });
  }
  expect(await topic.values('earliest')).toEqual(['a', 'b', 'c']);
});

test('an approximate trim leaves no less than an append asks for, and not everything', async () => {
  await using topic = openTopic();
  const { log } = topic;
  const appends = Array.from({ length: 350 }, (_, n) =>
    log.append(topic.topic, `${n}`, { retention: { maxEntries: 10 } }),
  );
  await Promise.all(appends);
  const { first, last } = await log.bounds(topic.topic);
  expect(last.ordinal).toBe(350);
  expect(last.ordinal - first.ordinal).toBeGreaterThanOrEqual(10);
  expect(first.ordinal).toBeGreaterThan(0);
});
