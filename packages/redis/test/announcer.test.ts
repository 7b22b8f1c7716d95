import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import {
  type Announcer,
  announce,
  type Broker,
  type BrokerError,
  type Clock,
  watch,
} from '@brokerfeed/core';
import { type RedisBrokerOptions, redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startFaultProxy } from '../../../test/support/fault-proxy.ts';
import { startRedis } from '../../../test/support/redis.ts';
import { connections, eventually, openTopic } from './support.ts';

const READER = 'brokerfeed-reader';

test.each(['plain', '{tagged}'])(
  'announcements under the prefix %s come to the topic that they name, and to no other',
  async (label) => {
    const prefix = `${label}-${crypto.randomUUID()}`;
    await using here = openTopic({ prefix });
    await using there = openTopic({ prefix });
    const topics = ['a', 'a%said', '{a}:said', 'a:said', '{'];
    const heard = await Promise.all(topics.map((topic) => listen(there.broker, topic)));
    for (const topic of topics) {
      announce(here.broker, topic, `to ${topic}`);
      await here.log.append(topic, 'a commit');
    }
    announce(here.broker, '{', 'the last');
    await heard[4]?.received(2);
    expect(heard.map(({ values }) => values)).toEqual([
      ...topics.slice(0, 4).map((topic) => [`to ${topic}`]),
      ['to {', 'the last'],
    ]);
  },
);

test('announcements come to the database that they are made in, and to no other', async () => {
  await using one = openTopic();
  const { prefix } = one;
  const client = one.client.duplicate({ db: 1 });
  await using other = openTopic({ client, prefix });
  const [here, there] = [await listen(one.broker, 'a'), await listen(other.broker, 'a')];
  announce(one.broker, 'a', 'to the first');
  await here.received(1);
  announce(other.broker, 'a', 'to the second');
  await there.received(1);
  announce(one.broker, 'a', 'the last');
  await here.received(2);
  expect([here.values, there.values]).toEqual([['to the first', 'the last'], ['to the second']]);
  client.disconnect();
});

test('what one instance announces comes in its order, and one object to all who listen', async () => {
  await using topic = openTopic();
  const one = await listen(topic.broker, 'a');
  const other = await listen(topic.broker, 'a');
  const values = Array.from({ length: 500 }, (_, n) => `${n}`);
  for (const value of values) announce(topic.broker, 'a', value);
  await Promise.all([one.received(500), other.received(500)]);
  expect(one.values).toEqual(values);
  expect(one.announcements.every((heard, n) => heard === other.announcements[n])).toBe(true);
});

test('a topic that is announced on does not come into being', async () => {
  await using topic = openTopic();
  const watching = await listen(topic.broker, 'a');
  announce(topic.broker, 'a', 'x');
  await watching.received(1);
  expect(await topic.client.keys(`*${topic.prefix}*`)).toEqual([]);
});

test('a watch whose connection is lost is told that announcements may be missing, and hears on', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const watching = await watch(topic.broker, 'a', { only: 'announcements' });
  announce(topic.broker, 'a', 'before');
  expect(await watching.next()).toMatchObject({ value: 'before' });
  const [reader] = await connections(topic.client, READER);
  await topic.client.client('KILL', 'ID', reader?.id as string);
  expect(await watching.next()).toEqual({ kind: 'lagged', missed: undefined });
  announce(topic.broker, 'a', 'after');
  expect(await watching.next()).toMatchObject({ value: 'after' });
  watching.close();
});

test('a watch on a server that is not the primary any more is moved to the one that is', async () => {
  await using old = await startRedis();
  await using next = await startRedis();
  await using proxy = await startFaultProxy(old.port);
  const client = new Redis({ port: proxy.port, lazyConnect: true });
  await using broker = redisBroker({ client, checkMs: 200 });
  const watching = await watch(broker, 'a', { only: 'announcements' });
  announce(broker, 'a', 'before');
  expect(await watching.next()).toMatchObject({ value: 'before' });
  // The old one lives on, with the subscription; only commands find the new one.
  proxy.retarget(next.port);
  const admin = new Redis(old.port);
  const [commands] = await connections(admin, 'brokerfeed');
  await admin.client('KILL', 'ID', commands?.id as string);
  admin.disconnect();
  expect(await watching.next()).toEqual({ kind: 'lagged', missed: undefined });
  announce(broker, 'a', 'after');
  expect(await watching.next()).toMatchObject({ value: 'after' });
});

test('an instance that only announces finds the primary, when its server is none any more', async () => {
  await using old = await startRedis();
  await using next = await startRedis();
  await using proxy = await startFaultProxy(old.port);
  const client = new Redis({ port: proxy.port, lazyConnect: true });
  await using broker = redisBroker({ client, prefix: 'p', checkMs: 50 });
  await using there = openTopic({ url: next.url, prefix: 'p' });
  const heard = await listen(there.broker, 'a');
  const admin = new Redis(old.port);
  announce(broker, 'a', 'not here');
  await eventually(async () => {
    const stats = await admin.call('INFO', 'commandstats');
    return String(stats).includes('cmdstat_spublish:');
  });
  proxy.retarget(next.port);
  // A primary that it cannot reach: while it loads what one has, it would refuse messages.
  await admin.replicaof('127.0.0.1', 1);
  admin.disconnect();
  await eventually(async () => {
    announce(broker, 'a', 'here');
    return heard.values.length > 0;
  });
  expect(new Set(heard.values)).toEqual(new Set(['here']));
});

test('one who joins while the subscription is lost is told of no loss', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const first = await listen(topic.broker, 'a');
  const [reader] = await connections(topic.client, READER);
  await topic.client.client('KILL', 'ID', reader?.id as string);
  await eventually(async () => (await connections(topic.client, READER))[0]?.id !== reader?.id);
  const second = await listen(topic.broker, 'a');
  announce(topic.broker, 'a', 'x');
  await Promise.all([first.received(1), second.received(1)]);
  expect([first.interruptions, second.interruptions]).toEqual([1, 0]);
});

test('a subscription ends with the last who listens', async () => {
  await using topic = openTopic();
  const channels = (): Promise<unknown> =>
    topic.client.call('PUBSUB', 'SHARDCHANNELS', `*${topic.prefix}*`);
  const [one, other] = [await listen(topic.broker, 'a'), await listen(topic.broker, 'a')];
  one.remove();
  announce(topic.broker, 'a', 'x');
  await other.received(1);
  expect(one.values).toEqual([]);
  expect(await channels()).toHaveLength(1);
  other.remove();
  await eventually(async () => ((await channels()) as unknown[]).length === 0);
  const again = await listen(topic.broker, 'a');
  announce(topic.broker, 'a', 'y');
  await again.received(1);
});

test('close ends those who listen with CLOSED, and those who are about to', async () => {
  await using topic = openTopic();
  const listening = await listen(topic.broker, 'a');
  const joining = listen(topic.broker, 'b');
  await Promise.all([topic.broker.close(), expect(joining).rejects.toMatchObject(CLOSED)]);
  expect(listening.ends).toMatchObject([CLOSED]);
  await expect(listen(topic.broker, 'a')).rejects.toMatchObject(CLOSED);
  expect(() => announce(topic.broker, 'a', 'x')).toThrow(expect.objectContaining(CLOSED));
});

test('close ends those whose subscription is lost, and waits to be tried again', async () => {
  const redis = await startRedis();
  // The next try never comes.
  const clock: Clock = { now: () => Date.now(), after: () => () => {} };
  await using topic = openTopic({ url: redis.url, clock });
  const listening = await listen(topic.broker, 'a');
  await redis[Symbol.asyncDispose]();
  const joining = await eventually(async () => {
    let joined = false;
    const promise = listen(topic.broker, 'a');
    void promise.then(
      () => {
        joined = true;
      },
      () => {},
    );
    await new Promise(setImmediate);
    return joined ? undefined : { promise };
  });
  const refused = expect(joining.promise).rejects.toMatchObject(CLOSED);
  await Promise.all([topic.broker.close(), refused]);
  expect(listening.ends).toMatchObject([CLOSED]);
});

test('what was announced before a close is sent', async () => {
  await using topic = openTopic();
  const watching = await listen(topic.broker, 'a');
  await using leaving = openTopic({ prefix: topic.prefix });
  announce(leaving.broker, 'a', 'hello');
  await watching.received(1);
  for (let n = 0; n < 10; n += 1) announce(leaving.broker, 'a', 'bye');
  await leaving.broker.close();
  await watching.received(11);
});

test('a user who may not subscribe is told so, and one who may not publish is counted', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const rules = ['on', '>pw', '~*', '+@all', 'resetchannels', `&${topic.prefix}:*`];
  await topic.client.acl('SETUSER', 'some', ...rules);
  const counted: Counted[] = [];
  const warnings: unknown[] = [];
  const { port } = redis;
  const client = new Redis({ port, username: 'some', password: 'pw', lazyConnect: true });
  const logger = { ...SILENT, warn: (fields: object) => warnings.push(fields) };
  const { prefix } = topic;
  await using broker = redisBroker({ client, prefix, logger, meter: meterInto(counted) });
  const unsupported = { code: 'UNSUPPORTED', message: expect.stringMatching(/NOPERM/) };
  await expect(listen(broker, 'a')).rejects.toMatchObject(unsupported);
  for (let n = 0; n < 3; n += 1) announce(broker, 'a', 'x');
  await eventually(async () => counted.length === 3);
  expect(counted[0]).toEqual({ name: 'brokerfeed.announce.failed', code: 'UNSUPPORTED' });
  expect(warnings).toMatchObject([{ err: unsupported }]);
});

test('announcements that Redis does not take are lost, counted, and do not come later', async () => {
  const stopped = await startRedis();
  const { port } = stopped;
  await stopped[Symbol.asyncDispose]();
  const counted: Counted[] = [];
  const options = { prefix: 'lost', retryMs: 60_000, meter: meterInto(counted) };
  const client = new Redis({ port, lazyConnect: true });
  await using broker = redisBroker({ client, ...options });
  for (const value of ['a', 'b']) announce(broker, 'a', value);
  await eventually(async () => counted.length === 2);
  expect(counted[0]).toEqual({ name: 'brokerfeed.announce.failed', code: 'UNAVAILABLE' });
  await using redis = await startRedis({ port });
  expect(redis.port).toBe(port);
  const heard = await listen(broker, 'a');
  announce(broker, 'a', 'c');
  await heard.received(1);
  expect(heard.values).toEqual(['c']);
});

test('a Redis that does not answer has no more than so many announcements gathered', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const counted: Counted[] = [];
  const client = new Redis({ port, lazyConnect: true });
  const broker = redisBroker({ client, meter: meterInto(counted) });
  for (let n = 0; n < 10_003; n += 1) announce(broker, 'a', 'x');
  expect(counted).toHaveLength(3);
  await broker.close();
  silent.close();
});

const CLOSED = { name: 'BrokerError', code: 'CLOSED' };
const SILENT = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

interface Counted {
  readonly name: string;
  readonly code: unknown;
}

function meterInto(counted: Counted[]): NonNullable<RedisBrokerOptions['meter']> {
  return {
    count: (name, _, attributes) => {
      counted.push({ name, code: attributes?.code });
    },
    record: () => {},
  };
}

interface Listening {
  readonly announcements: unknown[];
  readonly values: string[];
  readonly ends: BrokerError[];
  readonly interruptions: number;
  received(count: number): Promise<void>;
  remove(): void;
}

async function listen(broker: Broker, topic: string): Promise<Listening> {
  const announcements: unknown[] = [];
  const values: string[] = [];
  const ends: BrokerError[] = [];
  let interruptions = 0;
  const announcer = broker.announcer as Announcer;
  const remove = await announcer.listen(topic, {
    receive: (announcement) => {
      announcements.push(announcement);
      values.push(announcement.value);
    },
    interrupted: () => {
      interruptions += 1;
    },
    end: (error) => void ends.push(error),
  });
  return {
    announcements,
    values,
    ends,
    get interruptions() {
      return interruptions;
    },
    received: async (count) => {
      await eventually(async () => values.length >= count);
    },
    remove,
  };
}
