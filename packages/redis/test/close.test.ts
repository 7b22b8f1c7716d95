import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, inject, test } from 'vitest';
import { bundled } from '../../../test/support/bundle.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { connections, eventually, liveRead, openTopic } from './support.ts';

const run = promisify(execFile);
const CLOSED = { code: 'CLOSED' };

test('close ends every read with CLOSED, and leaves no connection of ours', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, checkMs: 60_000 });
  await topic.append('a');
  await using read = await liveRead(topic, await topic.tip());
  await using starting = await liveRead(topic, await topic.tip());
  await Promise.all([topic.broker.close(), topic.broker.close()]);
  await expect(read.ended).rejects.toMatchObject(CLOSED);
  await expect(starting.ended).rejects.toMatchObject(CLOSED);
  await expect(topic.log.append('t', 'a')).rejects.toMatchObject(CLOSED);
  await expect(topic.log.page('t', 'latest', 0)).rejects.toMatchObject(CLOSED);
  await expect(topic.log.bounds('t')).rejects.toMatchObject(CLOSED);
  await eventually(async () => {
    const list = String(await topic.client.client('LIST'));
    return list.trim().split('\n').length === 1;
  });
  expect(await topic.client.ping()).toBe('PONG');
});

test('an append under way at the close is answered first', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  await topic.append('first');
  await topic.client.call('CLIENT', 'PAUSE', '60000', 'WRITE');
  const append = topic.log.append(topic.topic, 'last');
  await eventually(async () => {
    const [ours] = await connections(topic.client, 'brokerfeed');
    return ours?.command === 'evalsha';
  });
  const closed = topic.broker.close();
  const [ours] = await connections(topic.client, 'brokerfeed');
  expect(ours).toBeDefined();
  await topic.client.call('CLIENT', 'UNPAUSE');
  expect((await append).ordinal).toBe(2);
  await closed;
});

test('a read whose broker is closed as it becomes live ends, and leaves no connection', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const from = await topic.tip();
  let closed: Promise<void> | undefined;
  const sink = {
    live: () => {
      closed = topic.broker.close();
    },
    commits: () => {},
  };
  const read = topic.log.follow(topic.topic, from, sink, new AbortController().signal);
  await expect(read).rejects.toMatchObject(CLOSED);
  await closed;
  await eventually(async () => {
    const list = String(await topic.client.client('LIST'));
    return list.trim().split('\n').length === 1;
  });
});

test("the user's client keeps no listener, and carries no command of ours", async () => {
  await using redis = await startRedis();
  const client = new Redis(redis.url, { connectionName: '' });
  const listeners = () => client.eventNames().map((name) => [name, client.listenerCount(name)]);
  await client.ping();
  const before = listeners();
  await using topic = openTopic({ client, checkMs: 50 });
  await topic.append('a');
  {
    await using read = await liveRead(topic, await topic.tip());
    await topic.append('b');
    await read.received(1);
  }
  expect(listeners()).toEqual(before);
  await topic.broker.close();
  expect(listeners()).toEqual(before);
  client.disconnect();
});

test('a broker that was never used, or cannot connect, closes', async () => {
  const client = new Redis({ port: 1, lazyConnect: true });
  await redisBroker({ client }).close();
  const broker = redisBroker({ client, retryMs: 60_000 });
  const append = broker.log.append('t', 'a');
  const read = broker.log.page('t', 'latest', 0);
  const ended = Promise.allSettled([append, read]);
  await broker.close();
  expect(await ended).toMatchObject([{ reason: CLOSED }, { reason: CLOSED }]);
});

test('after close nothing keeps the process alive', async () => {
  const script = bundled(new URL('close-and-exit.ts', import.meta.url));
  const { stdout } = await run('node', [script, inject('redisUrl')]);
  expect(stdout).toBe('b\nclosed\n');
});

test.each([
  [{ client: undefined }, /^client is an ioredis client/],
  [{ client: {} }, /^client is an ioredis client/],
  [{ prefix: '' }, /^prefix is /],
  [{ checkMs: 0 }, /^checkMs is a whole number/],
  [{ retention: { maxEntries: 0 } }, /^retention.maxEntries is /],
  [{ retention: { maxAgeMs: 1.5 } }, /^retention.maxAgeMs is /],
  [{ retention: { trim: 'some' } }, /^retention.trim is /],
  [{ idempotencyWindowMs: -1 }, /^idempotencyWindowMs is /],
  [{ maxEntryBytes: Number.NaN }, /^maxEntryBytes is /],
])('%j is refused at construction', (options, message) => {
  const client = new Redis({ lazyConnect: true });
  // Wrong on purpose: what a caller without types may pass.
  const given = { client, ...options } as never;
  expect(() => redisBroker(given)).toThrow(message);
});
