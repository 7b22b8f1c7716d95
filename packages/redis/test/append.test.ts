import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { startRedis } from '../../../test/support/redis.ts';
import { at, openTopic } from './support.ts';

test('two hundred appends at a time are dense and in the order of the calls', async () => {
  await using topic = openTopic();
  const values = Array.from({ length: 200 }, (_, index) => `v${index}`);
  const positions = await Promise.all(values.map((value) => topic.log.append(topic.topic, value)));
  expect(positions.map(({ ordinal }) => ordinal)).toEqual(values.map((_, index) => index + 1));
  expect(await topic.values('earliest')).toEqual(values);
});

test('a commit is one stream entry that names its place and its predecessor', async () => {
  await using topic = openTopic();
  const [first] = await topic.append('a');
  await topic.log.append(topic.topic, ['b', 'c'], { headers: { k: 'x' } });
  const entries = await topic.client.xrange(topic.key, '-', '+');
  expect(entries.map(([, fields]) => fields)).toEqual([
    ['o', '1', 'p', '0-0', 'e', first?.epoch, 'v', 'a'],
    ['o', '2', 'p', first?.id, 'e', first?.epoch, 'h', '{"k":"x"}', 'v', 'b', 'v', 'c'],
  ]);
});

test('the largest commit is written whole', async () => {
  await using topic = openTopic();
  const values = Array.from({ length: 10_000 }, (_, index) => `v${index}`);
  await topic.log.append(topic.topic, values);
  expect(await topic.values('earliest')).toEqual(values);
});

test('a page ends at about a mebibyte, between commits, and never empty', async () => {
  await using topic = openTopic();
  const big = 'x'.repeat(700_000);
  await topic.append('s', big, 's', big, big, 's');
  const sizes: number[] = [];
  let from = (await topic.log.bounds(topic.topic)).first;
  for (let atTip = false; !atTip; ) {
    const page = await topic.log.page(topic.topic, from, 1000);
    if (page.verdict !== 'ok') throw new Error(page.verdict);
    sizes.push(page.commits.length);
    from = at(page.commits, -1).position;
    atTip = page.atTip;
  }
  expect(sizes).toEqual([3, 1, 2]);
});

test('a server without the scripts is given their text', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  await topic.append('a');
  await topic.client.script('FLUSH');
  await topic.append('b');
  await topic.client.script('FLUSH');
  expect(await topic.values('earliest')).toEqual(['a', 'b']);
});

test("the keyPrefix of the user's client is before every key, and its other options do no harm", async () => {
  const client = new Redis(inject('redisUrl'), {
    keyPrefix: 'mine:',
    enableAutoPipelining: true,
    stringNumbers: true,
    replyMapping: 'resp3',
    maxRetriesPerRequest: 1,
  });
  await using topic = openTopic({ client });
  await using plain = openTopic({ prefix: `mine:${topic.prefix}` });
  const options = { idempotencyKey: 'k' };
  const position = await topic.log.append(topic.topic, 'a', options);
  expect(await topic.log.append(topic.topic, 'a', options)).toEqual(position);
  expect(position.ordinal).toBe(1);
  expect(await plain.values('earliest')).toEqual(['a']);
  // Its own client sees the key under the short name.
  expect(String(await client.xlen(topic.key))).toBe('1');
  client.disconnect();
});

test('an idempotency key is forgotten with its topic, and with the commit that a rollback lost', async () => {
  await using topic = openTopic();
  const append = (value: string) => topic.log.append(topic.topic, value, { idempotencyKey: 'k' });
  await topic.append('first');
  const dump = await topic.client.dumpBuffer(topic.key);
  await append('a');
  await topic.client.restore(topic.key, 0, dump as Buffer, 'REPLACE');
  expect((await append('a')).ordinal).toBe(2);
  expect(await topic.values('earliest')).toEqual(['first', 'a']);
  await topic.client.del(topic.key);
  expect((await append('b')).ordinal).toBe(1);
});

test('an idempotency key is remembered for its window', async () => {
  await using topic = openTopic({ idempotencyWindowMs: 60_000 });
  await topic.log.append(topic.topic, 'a', { idempotencyKey: 'k' });
  const [once] = await topic.client.keys(`{${topic.key}}:once:*`);
  const left = await topic.client.pttl(once as string);
  expect(left).toBeGreaterThan(50_000);
  expect(left).toBeLessThanOrEqual(60_000);
});

test('a key that holds something else is damage, and a topic named by odd text is a key of its own', async () => {
  await using topic = openTopic();
  await topic.client.set(topic.key, 'x');
  await expect(topic.log.append(topic.topic, 'a')).rejects.toMatchObject({ code: 'DAMAGED' });
  await expect(topic.log.page(topic.topic, 'latest', 1)).rejects.toMatchObject({ code: 'DAMAGED' });
  const odd = ['room:*', '../x', '{a}', '%7Ba%7D', 'a\nb', ' ', '🗝', 'x'.repeat(512)];
  for (const name of odd) await topic.log.append(name, name);
  for (const name of odd) {
    const page = await topic.log.page(name, 'earliest', 10);
    expect(page).toMatchObject({ commits: [{ entries: [{ value: name }] }] });
  }
});

test('a server that may evict topics is warned of, once', async () => {
  const args = ['--maxmemory', '100mb', '--maxmemory-policy', 'allkeys-lru'];
  await using redis = await startRedis({ args });
  const warnings: unknown[] = [];
  const nothing = (): void => {};
  const warn = (fields: object, event: string): void => void warnings.push([event, fields]);
  const logger = { debug: nothing, info: nothing, warn, error: nothing };
  await using topic = openTopic({ url: redis.url, logger });
  await topic.append('a', 'b');
  expect(warnings).toEqual([['redis.eviction', { policy: 'allkeys-lru' }]]);
});
