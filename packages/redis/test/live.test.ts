import { systemClock } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { startRedis } from '../../../test/support/redis.ts';
import { connections, eventually, liveRead, openTopic, type TestTopic } from './support.ts';

/** Longer than any test: whoever waits it out fails. */
const FOREVER_MS = 60_000;
const READER = 'brokerfeed-reader';

/** Waits until readers are subscribed to so many topics. */
function subscribed(topic: TestTopic, topics = 1): Promise<unknown> {
  return eventually(async () => {
    const channels = (await topic.client.call('PUBSUB', 'SHARDCHANNELS')) as string[];
    return channels.filter((channel) => channel.startsWith(topic.prefix)).length === topics;
  });
}

test('a topic that joins a reader is read at once, and leaves it when nobody reads it', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: FOREVER_MS });
  await topic.append('a');
  await using _first = await liveRead(topic, await topic.tip());
  for (let n = 0; n < 20; n += 1) {
    const other: TestTopic = { ...topic, topic: `other ${n}` };
    await other.log.append(other.topic, 'x');
    await using read = await liveRead(other, (await other.log.bounds(other.topic)).last);
    await other.log.append(other.topic, 'y');
    expect(await read.received(1)).toEqual(['y']);
  }
  await subscribed(topic, 1);
  expect(await connections(topic.client, READER)).toHaveLength(1);
});

test.concurrent('a bare XADD wakes a live read, and is delivered once', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const { client, key } = topic;
  await using read = await liveRead(topic, await topic.tip());
  await client.xadd(key, '*', 'v', 'bare 1');
  await read.received(1);
  await topic.append('ours 2');
  await client.xadd(key, '*', 'v', 'bare 3', 'v', 'bare 4');
  await client.xadd(key, '*', 'name', 'x');
  await topic.append('ours 5');
  expect(await read.received(5)).toEqual([
    'bare 1',
    'ours 2',
    'bare 3',
    'bare 4',
    '{"name":"x"}',
    'ours 5',
  ]);
  expect(read.commits.map(({ position }) => position.ordinal)).toEqual([1, 2, 3, 4, 5]);
  const page = await topic.log.page(topic.topic, 'earliest', 10);
  expect(page).toMatchObject({ commits: read.commits });
});

test('several live reads of one topic, from different places, share a connection and each get all', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: FOREVER_MS });
  const start = await topic.tip();
  const [first] = await topic.append('a', 'b');
  if (first === undefined) throw new Error('no position');
  await using all = await liveRead(topic, start);
  await using some = await liveRead(topic, first);
  await topic.append('c');
  expect(await all.received(3)).toEqual(['a', 'b', 'c']);
  expect(await some.received(2)).toEqual(['b', 'c']);
  expect(await connections(topic.client, READER)).toHaveLength(1);
});

test('a thousand topics share a connection, which goes with the last of them', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: FOREVER_MS });
  const topics = Array.from(
    { length: 1_000 },
    (_, n): TestTopic => ({ ...topic, topic: `topic ${n}` }),
  );
  const reads = await Promise.all(
    topics.map(async (other) => liveRead(other, await other.log.append(other.topic, 'x'))),
  );
  expect(await connections(topic.client, READER)).toHaveLength(1);
  await Promise.all(topics.map((other) => other.log.append(other.topic, other.topic)));
  for (const [n, read] of reads.entries()) expect(await read.received(1)).toEqual([`topic ${n}`]);
  for (const read of reads) await read[Symbol.asyncDispose]();
  await eventually(async () => (await connections(topic.client, READER)).length === 0);
});

test('a live commit costs Redis its append and nothing else', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: FOREVER_MS });
  await topic.append('first');
  await using read = await liveRead(topic, await topic.tip());
  const before = await callsOf(topic, 'evalsha');
  await topic.append(...Array.from({ length: 50 }, (_, n) => `v${n}`));
  await read.received(50);
  expect(await callsOf(topic, 'evalsha')).toBe(before + 50);
});

async function callsOf({ client }: TestTopic, command: string): Promise<number> {
  const stats = await client.info('commandstats');
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
}

test('commits of every shape arrive live as a page has them', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const start = await topic.tip();
  await using read = await liveRead(topic, start);
  const { log } = topic;
  const odd = ['', '\n', 'a\nb', '"\\/', 'v 1-1 1 0-0 x\n', '\u0000', 'é🗝\u2028', '{"v":[1]}'];
  for (const value of odd) await log.append(topic.topic, value);
  await log.append(topic.topic, odd);
  await log.append(topic.topic, 'x', { headers: { 'a b': '"\n', __proto__x: 'é' } });
  await log.append(topic.topic, odd, { headers: { k: 'v' } });
  await log.append(
    topic.topic,
    Array.from({ length: 3_000 }, (_, n) => `v${n}`),
  );
  // Too large to be announced.
  await log.append(topic.topic, 'é'.repeat(200_000));
  await log.append(topic.topic, ['x'.repeat(100_000), 'y']);
  await log.append(topic.topic, 'last');
  const count = odd.length + 7;
  await read.received(count);
  const page = await log.page(topic.topic, start, 1_000);
  expect(page).toMatchObject({ verdict: 'ok', commits: read.commits });
  expect(read.commits).toHaveLength(count);
});

test('a reader that is killed is made anew, and its live reads miss nothing', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: FOREVER_MS });
  await topic.append('a');
  await using read = await liveRead(topic, await topic.tip());
  for (let n = 1; n <= 5; n += 1) {
    await subscribed(topic);
    const [reader] = await connections(topic.client, READER);
    const killed = topic.client.client('KILL', 'ID', reader?.id as string);
    await topic.append(`while ${n}`);
    await killed;
    expect(await read.received(n)).toHaveLength(n);
  }
  expect(read.values).toEqual([1, 2, 3, 4, 5].map((n) => `while ${n}`));
});

test('a topic that is gone is found on a quiet reader, and on one that another topic keeps busy', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: 50 });
  const busy: TestTopic = { ...topic, topic: 'busy' };
  await using quietRead = await liveRead(topic, (await topic.append('a'))[0] as never);
  await topic.client.del(topic.key);
  expect(await quietRead.ended).toBe('epoch');

  const [position] = await topic.append('b');
  await using busyRead = await liveRead(busy, await busy.log.append('busy', 'x'));
  await using read = await liveRead(topic, position as never);
  let going = true;
  const writing = (async () => {
    while (going) await busy.log.append('busy', 'x');
  })();
  await topic.client.del(topic.key);
  expect(await read.ended).toBe('epoch');
  going = false;
  await writing;
  await busyRead.received(1);
});

test.concurrent('a clock that is set back by hours keeps no topic from being checked', async () => {
  let skewMs = 0;
  const clock = { now: () => systemClock.now() + skewMs, after: systemClock.after };
  await using topic = openTopic({ checkMs: 50, clock });
  const [position] = await topic.append('a');
  await using read = await liveRead(topic, position as never);
  skewMs = -3 * 3_600_000;
  await topic.client.del(topic.key);
  expect(await read.ended).toBe('epoch');
});

test.concurrent('a rollback under a quiet live read is ahead', async () => {
  await using topic = openTopic({ checkMs: 50 });
  const { client, key } = topic;
  await topic.append('a');
  const dump = (await client.dumpBuffer(key)) as Buffer;
  const [tip] = await topic.append('lost');
  {
    await using read = await liveRead(topic, tip as never);
    await client.restore(key, 0, dump, 'REPLACE');
    expect(await read.ended).toBe('ahead');
  }
});

test.concurrent('a rollback that left the same count is forked, though nothing but the link shows it', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const { client, key } = topic;
  const { epoch } = await topic.tip();
  // Under ids that leave room.
  const add = (...args: Mark) => written(key, epoch, ...args);
  await client.call(...add('1000-0', '1', '0-0', 'a'));
  const dump = (await client.dumpBuffer(key)) as Buffer;
  await client.call(...add('2000-0', '2', '1000-0', 'lost'));
  await using read = await liveRead(topic, await topic.tip());
  await subscribed(topic);
  const rollback = client.multi().restore(key, 0, dump, 'REPLACE');
  rollback.call(...add('1500-0', '2', '1000-0', 'other'));
  rollback.call(...add('3000-0', '3', '1500-0', 'next'));
  await rollback.exec();
  expect(await read.ended).toBe('forked');
  expect(read.values).toEqual([]);
});

type Mark = readonly [id: string, ordinal: string, previous: string, value: string];

/** What the append script writes. */
function written(key: string, epoch: string, ...[id, ordinal, previous, value]: Mark) {
  return ['XADD', key, id, 'o', ordinal, 'p', previous, 'e', epoch, 'v', value] as const;
}

test.concurrent('a trim that overtakes a live read is told, whatever wakes it', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const { client, key } = topic;
  await topic.append('a');
  await using read = await liveRead(topic, await topic.tip());
  await client
    .multi()
    .xadd(key, '*', 'v', 'missed')
    .xtrim(key, 'MAXLEN', '=', 0)
    .xadd(key, '*', 'v', 'b')
    .exec();
  expect(await read.ended).toBe('trimmed');
  expect(read.values).toEqual([]);
});

test.concurrent('a commit deleted before a live read saw it is told', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const { client, key } = topic;
  await topic.append('a');
  await using read = await liveRead(topic, await topic.tip());
  const id = '99999999999999-1';
  await client.multi().xadd(key, id, 'v', 'missed').xdel(key, id).xadd(key, '*', 'v', 'b').exec();
  expect(await read.ended).toBe('trimmed');
  expect(read.values).toEqual([]);
});

test.concurrent('a topic made anew in one step, under a live read at its very start, is another log', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const { client, key } = topic;
  await using read = await liveRead(topic, await topic.tip());
  const anew = client.multi().xadd(key, '*', 'v', 'missed').del(key);
  anew.xgroup('CREATE', key, 'epoch:AAAAAAAAAAAA', '0', 'MKSTREAM');
  anew.call(...written(key, 'AAAAAAAAAAAA', '*', '1', '0-0', 'x'));
  await anew.exec();
  expect(await read.ended).toBe('epoch');
  expect(read.values).toEqual([]);
});

test.concurrent('a topic made anew within the millisecond, which repeats ids and ordinals, is another log', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const { client, key } = topic;
  const from = await topic.log.append(topic.topic, 'a');
  await using read = await liveRead(topic, from);
  const anew = client.multi().del(key);
  anew.xgroup('CREATE', key, 'epoch:AAAAAAAAAAAA', '0', 'MKSTREAM');
  anew.call(...written(key, 'AAAAAAAAAAAA', from.id, '1', '0-0', 'missed'));
  anew.call(...written(key, 'AAAAAAAAAAAA', '*', '2', from.id, 'x'));
  await anew.exec();
  expect(await read.ended).toBe('epoch');
  expect(read.values).toEqual([]);
});
