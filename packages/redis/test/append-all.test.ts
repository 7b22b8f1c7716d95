import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startRedis } from '../../../test/support/redis.ts';
import { at, eventually, LiveRead, openTopic } from './support.ts';

test('the largest commit is written whole, across as many topics', async () => {
  await using topic = openTopic();
  const parts = Array.from({ length: 5_000 }, (_, n) => ({ topic: `t${n}`, value: ['a', 'b'] }));
  const { positions } = await topic.log.appendAll(parts, { idempotencyKey: 'k' });
  expect(positions).toHaveLength(5_000);
  expect(await topic.log.appendAll(parts, { idempotencyKey: 'k' })).toEqual({ positions });
  const { last } = await topic.log.bounds('t4999');
  expect(last).toEqual(positions[4_999]);
  expect(await topic.client.xlen(`${topic.prefix}:t4999`)).toBe(1);
});

test('a key that is no topic refuses the whole, before anything is written', async () => {
  await using topic = openTopic();
  await topic.client.set(`${topic.prefix}:b`, 'no stream');
  const parts = ['a', 'b'].map((name) => ({ topic: name, value: 'x' }));
  await expect(topic.log.appendAll(parts)).rejects.toMatchObject({ code: 'DAMAGED' });
  expect((await topic.log.bounds('a')).last.ordinal).toBe(0);
});

test('a user who may not write to one of the topics writes to none', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const { prefix } = topic;
  const rules = ['on', '>pw', `~${prefix}:a`, '&*', '+@all'];
  await topic.client.acl('SETUSER', 'some', ...rules);
  const { port } = redis;
  const client = new Redis({ port, username: 'some', password: 'pw', lazyConnect: true });
  await using broker = redisBroker({ client, prefix });
  const parts = ['a', 'b'].map((name) => ({ topic: name, value: 'x' }));
  await expect(broker.log.appendAll(parts)).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  expect((await topic.log.bounds('a')).last.ordinal).toBe(0);
});

test('a full Redis refuses the whole', async () => {
  await using redis = await startRedis({ args: ['--maxmemory-policy', 'noeviction'] });
  await using topic = openTopic({ url: redis.url, retryMs: 0 });
  await topic.append('a');
  await topic.client.config('SET', 'maxmemory', '1');
  const parts = [topic.topic, 'b'].map((name) => ({ topic: name, value: 'x' }));
  await expect(topic.log.appendAll(parts)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  await topic.client.config('SET', 'maxmemory', '0');
  expect(await topic.values('earliest')).toEqual(['a']);
});

test('each part is announced to those who read its topic live', async () => {
  await using topic = openTopic({ checkMs: 60_000 });
  const names = ['a', 'b', 'c'];
  const reads = await Promise.all(
    names.map(async (name) => {
      const read = new LiveRead(topic.log, name, (await topic.log.bounds(name)).last);
      await read.live;
      return read;
    }),
  );
  const listener = topic.client.duplicate();
  const notices: string[] = [];
  listener.on('smessage', (_, text: string) => notices.push(text.slice(0, text.indexOf(' '))));
  for (const name of names) await listener.ssubscribe(`${topic.prefix}:${name}`);
  const large = 'x'.repeat(100_000);
  const { positions } = await topic.log.appendAll([
    { topic: 'a', value: 'one' },
    { topic: 'b', value: ['two', 'three'], headers: { h: '1' } },
    { topic: 'c', value: large },
  ]);
  await Promise.all(reads.map((read) => read.received(1)));
  expect(reads.map(({ values }) => values)).toEqual([['one'], ['two', 'three'], [large]]);
  expect(reads.map(({ commits }) => at(commits, 0).position)).toEqual(positions);
  expect(at(at(at(reads, 1).commits, 0).entries, 1).headers).toEqual({ h: '1' });
  await eventually(async () => notices.length === 3);
  expect(notices).toEqual(['v', 'f', 'n']);
  listener.disconnect();
});

test('retention is applied to every topic of the commit', async () => {
  await using topic = openTopic({ retention: { maxEntries: 2, maxAgeMs: 60_000, trim: 'exact' } });
  const parts = ['a', 'b'].map((name) => ({ topic: name, value: 'x' }));
  for (let n = 0; n < 5; n += 1) await topic.log.appendAll(parts);
  for (const { topic: name } of parts) {
    const { first, last } = await topic.log.bounds(name);
    expect([first.ordinal, last.ordinal]).toEqual([3, 5]);
  }
  const [time] = await topic.client.time();
  await topic.client.xadd(`${topic.prefix}:old`, `${(Number(time) - 120) * 1000}-0`, 'v', 'old');
  await topic.log.appendAll([{ topic: 'old', value: 'new' }]);
  expect((await topic.log.bounds('old')).first.ordinal).toBe(1);
});

test('a commit across topics that were all deleted is written again; where one still holds it, it is not', async () => {
  await using topic = openTopic();
  const { client, prefix } = topic;
  const parts = ['a', 'b'].map((name) => ({ topic: name, value: 'x' }));
  const append = () => topic.log.appendAll(parts, { idempotencyKey: 'k' });
  const first = await append();
  await client.del(`${prefix}:a`);
  expect(await append()).toEqual(first);
  await client.del(`${prefix}:a`, `${prefix}:b`);
  const { positions } = await append();
  expect(positions).toEqual([
    (await topic.log.bounds('a')).last,
    (await topic.log.bounds('b')).last,
  ]);
  expect(positions.map(({ ordinal }) => ordinal)).toEqual([1, 1]);
  expect(await append()).toEqual({ positions });
});

test('a key of a commit across topics is remembered for the window, and no longer', async () => {
  await using topic = openTopic({ idempotencyWindowMs: 50 });
  const parts = ['a', 'b'].map((name) => ({ topic: name, value: 'x' }));
  await topic.log.appendAll(parts, { idempotencyKey: 'k' });
  await eventually(async () => (await topic.client.keys(`*${topic.prefix}*all*`)).length === 0);
  const { positions } = await topic.log.appendAll(parts, { idempotencyKey: 'k' });
  expect(positions.map(({ ordinal }) => ordinal)).toEqual([2, 2]);
});
