import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { connections, eventually, liveRead, openTopic, type TestTopic } from './support.ts';

/** Longer than any test: whoever waits it out fails. */
const FOREVER_MS = 60_000;
const READER = 'brokerfeed-reader';

test('a writer who may not publish writes all the same, and is read live', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: FOREVER_MS });
  const writer = await brokerOf(topic, redis.port, ['resetchannels']);
  await using read = await liveRead(topic, await topic.tip());
  const values = Array.from({ length: 15 }, (_, n) => `v${n}`);
  // One after the other: once somebody is known not to announce, nobody waits for a round to find the next.
  for (const [n, value] of values.entries()) {
    await writer.log.append(topic.topic, value);
    expect(await read.received(n + 1)).toHaveLength(n + 1);
  }
  expect(read.values).toEqual(values);
  await writer.close();
}, 12_000);

test('a reader who may not subscribe, or not check, is told so', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const unsupported = { code: 'UNSUPPORTED' };
  for (const rule of ['resetchannels', '-ssubscribe', '-ping']) {
    const reader = await brokerOf(topic, redis.port, [rule], 50);
    const from = await topic.tip();
    const signal = AbortSignal.timeout(FOREVER_MS);
    const sink = { live: () => {}, commits: () => {} };
    const ended = reader.log.follow(topic.topic, from, sink, signal);
    await expect(ended).rejects.toMatchObject(unsupported);
    await reader.close();
  }
});

async function brokerOf(topic: TestTopic, port: number, rules: string[], checkMs?: number) {
  await topic.client.acl('SETUSER', 'some', 'reset', 'on', '>pw', '~*', '&*', '+@all', ...rules);
  const client = new Redis({ port, username: 'some', password: 'pw', lazyConnect: true });
  return redisBroker({
    client,
    prefix: topic.prefix,
    ...(checkMs === undefined ? {} : { checkMs }),
  });
}

test('a reader that the server drops for being slow is made anew, and misses nothing', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: FOREVER_MS });
  await topic.client.config('SET', 'client-output-buffer-limit', 'pubsub 20000 0 0');
  await using read = await liveRead(topic, await topic.tip());
  const before = await connections(topic.client, READER);
  const values = Array.from({ length: 30 }, (_, n) => `${n}`.padEnd(n % 3 === 0 ? 60_000 : 10));
  await topic.append(...values);
  expect(await read.received(values.length)).toEqual(values);
  const after = await connections(topic.client, READER);
  expect(after[0]?.id).not.toBe(before[0]?.id);
});

test('what others say on the channel of a topic does no harm', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const [position] = await topic.append('a');
  if (position === undefined) throw new Error('no position');
  await using read = await liveRead(topic, position);
  const { epoch, id } = position;
  const forged = [
    '',
    'hello',
    `v 1-0 1 0-0 ${epoch}\nold`,
    `v 99999999999999-0 2 0-0 ${epoch}\nnot the one before`,
    `v 99999999999999-0 3 ${id} ${epoch}\none left out`,
    `v 99999999999999-0 2 ${id} BBBBBBBBBBBB\nanother epoch`,
    `f 99999999999999-0 2 ${id} ${epoch}\n[`,
    `n 99999999999999-0 2 ${id} ${epoch}`,
  ];
  for (const text of forged) await topic.client.call('SPUBLISH', topic.key, text);
  await topic.append('b');
  for (const text of forged) await topic.client.call('SPUBLISH', topic.key, text);
  await topic.append('c');
  expect(await read.received(2)).toEqual(['b', 'c']);
});

test('a bare XADD is read at once where its writer says something on the channel', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  await using read = await liveRead(topic, await topic.tip());
  const values = Array.from({ length: 30 }, (_, n) => `v${n}`);
  // Far more than the rounds of this test's time would find.
  for (const [n, value] of values.entries()) {
    await topic.client.xadd(topic.key, '*', 'v', value);
    await topic.client.call('SPUBLISH', topic.key, '');
    expect(await read.received(n + 1)).toHaveLength(n + 1);
  }
  expect(read.values).toEqual(values);
});

test('a key that is no stream ends its own live read, and hides nothing of the other topics', async () => {
  await using topic = openTopic({ checkMs: FOREVER_MS });
  const other: TestTopic = { ...topic, topic: 'other', key: `${topic.prefix}:other` };
  await using broken = await liveRead(topic, await topic.tip());
  await using first = await liveRead(other, (await other.log.bounds('other')).last);
  await using second = await liveRead(other, (await other.log.bounds('other')).last);
  await topic.client.del(topic.key);
  await topic.client.set(topic.key, 'x');
  await topic.client.xadd(other.key, '*', 'v', 'bare');
  expect(await first.received(1)).toEqual(['bare']);
  expect(await second.received(1)).toEqual(['bare']);
  await expect(broken.ended).rejects.toMatchObject({ code: 'DAMAGED' });
});

test('a subscription to a server that is not the primary any more is replaced', async () => {
  await using old = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
  await using next = await startRedis();
  await using proxy = await startFaultProxy(old.port);
  await using topic = openTopic({ url: next.url });
  const client = new Redis({ port: proxy.port, lazyConnect: true });
  await using broker = redisBroker({ client, prefix: topic.prefix, checkMs: 200 });
  const through = { ...topic, log: broker.log };
  await broker.log.append(topic.topic, 'a');
  await using read = await liveRead(through, await through.log.bounds(topic.topic).then(lastOf));
  await topic.client.replicaof('127.0.0.1', old.port);
  await eventually(async () => (await topic.client.exists(topic.key)) === 1);
  await topic.client.replicaof('NO', 'ONE');
  // The old one lives on, with the subscription; only commands find the new one.
  proxy.retarget(next.port);
  const admin = new Redis(old.port);
  const [commands] = await connections(admin, 'brokerfeed');
  await admin.client('KILL', 'ID', commands?.id as string);
  await topic.append('b');
  expect(await read.received(1)).toEqual(['b']);
  await eventually(async () => (await connections(topic.client, READER)).length === 1);
  await topic.append('c');
  expect(await read.received(2)).toEqual(['b', 'c']);
  admin.disconnect();
});

function lastOf<T>({ last }: { readonly last: T }): T {
  return last;
}
