import { type BrokerHarness, testBroker } from '@brokerfeed/conformance';
import { announce, watch } from '@brokerfeed/core';
import { redisBroker } from '@brokerfeed/redis';
import type { Cluster } from 'ioredis';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  type ClientOptions,
  type RedisCluster,
  SlotMove,
  startCluster,
} from '../../../test/support/redis-cluster.ts';
import { keySlot } from '../src/key-slot.ts';
import { USER, userRules } from './acl.ts';
import { at, eventually, LiveRead, liveRead, openTopic } from './support.ts';

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster();
  const rules = await userRules('*');
  for (const { client } of cluster.nodes) await client.acl('SETUSER', USER.username, ...rules);
});

afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
});

testBroker('redis broker on a cluster', clusterHarness, { runs: 20 });

test('a slot is computed as servers do', async () => {
  const { client } = at(cluster.nodes, 0);
  const parts = ['{', '}', '{}', 'a', 'ü', '𝛼', '%7B', ':'];
  for (let n = 0; n < 200; n++) {
    const length = n % 7;
    const key = Array.from({ length }, () => at(parts, Math.floor(Math.random() * 8))).join('');
    expect(keySlot(key), key).toBe(await client.cluster('KEYSLOT', key));
  }
});

test.each(['{a}b', '{', '}{', 'a{b', '{}', '{a}{b}', '%7Bx'])(
  'topic %j keeps its idempotency keys in its own slot',
  async (topic) => {
    await using opened = openTopic({ client: userClient() });
    const { log } = opened.broker;
    const first = await log.append(topic, 'a', { idempotencyKey: '}k{' });
    expect(await log.append(topic, 'a', { idempotencyKey: '}k{' })).toEqual(first);
    expect(first.ordinal).toBe(1);
  },
);

test('topics of a prefix with a hash tag share a slot', async () => {
  const client = userClient();
  await using broker = redisBroker({ client, prefix: `{tag}${crypto.randomUUID()}` });
  await broker.log.append('a{b}', '1', { idempotencyKey: 'k' });
  await broker.log.append('c', '2', { idempotencyKey: 'k' });
  expect((await broker.log.append('c', '2', { idempotencyKey: 'k' })).ordinal).toBe(1);
});

test('a commit across topics takes a prefix with a hash tag, and is refused without one', async () => {
  const client = userClient();
  const parts = ['a{b}', 'c', 'd'].map((topic) => ({ topic, value: `to ${topic}` }));
  const once = { idempotencyKey: 'k' };
  await using broker = redisBroker({ client, prefix: `{tag}${crypto.randomUUID()}` });
  const first = await broker.log.appendAll(parts, once);
  expect(await broker.log.appendAll(parts, once)).toEqual(first);
  expect(first.positions.map(({ ordinal }) => ordinal)).toEqual([1, 1, 1]);
  await using apart = redisBroker({ client, prefix: `apart${crypto.randomUUID()}` });
  await expect(apart.log.appendAll(parts)).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringMatching(/hash tag/),
  });
  for (const { topic } of parts) expect((await apart.log.bounds(topic)).last.ordinal).toBe(0);
});

test('quiet topics of many slots are asked after, each in its own', async () => {
  const client = userClient();
  const admin = cluster.client();
  await using topic = openTopic({ client, checkMs: 50 });
  const names = Array.from({ length: 12 }, (_, n) => `${n}`);
  const reads = await Promise.all(
    names.map(async (name) => {
      const read = new LiveRead(topic.log, name, (await topic.log.bounds(name)).last);
      await read.live;
      return read;
    }),
  );
  for (const name of names) await admin.del(`${topic.prefix}:${name}`);
  const ends = await Promise.all(reads.map(({ ended }) => ended));
  expect(ends).toEqual(names.map(() => 'epoch'));
});

test("the user's client is not used, nor connected; one that is closed serves as well", async () => {
  const client = userClient();
  {
    await using topic = openTopic({ client });
    await topic.append('a');
    await using read = await liveRead(topic, await topic.tip());
    await topic.append('b');
    await read.received(1);
  }
  expect(client.status).toBe('wait');
  client.disconnect();
  await using topic = openTopic({ client });
  await topic.append('a');
});

test('nodes are reached where natMap says', async () => {
  const host = 'redis.invalid';
  await setAll('cluster-announce-hostname', host);
  await setAll('cluster-preferred-endpoint-type', 'hostname');
  try {
    const { nodes } = cluster;
    await eventually(async () => {
      const views = await Promise.all(nodes.map(({ client }) => client.cluster('SLOTS')));
      return views.every((view) => JSON.stringify(view).split(host).length === nodes.length + 1);
    });
    const natMap = (name: string) =>
      name.startsWith(`${host}:`)
        ? { host: '127.0.0.1', port: Number(name.slice(host.length + 1)) }
        : null;
    await using topics = await manyTopics({ natMap });
    await topics.work();
  } finally {
    await setAll('cluster-preferred-endpoint-type', 'ip');
    await setAll('cluster-announce-hostname', '');
  }
});

test('nodes that do not say where they are, are where they were asked', async () => {
  await setAll('cluster-preferred-endpoint-type', 'unknown-endpoint');
  try {
    await using topics = await manyTopics({});
    await topics.work();
  } finally {
    await setAll('cluster-preferred-endpoint-type', 'ip');
  }
});

test('a cluster of which no node answers is unavailable, and the error says why', async () => {
  await using away = await startCluster({ primaries: 1 });
  const client = away.client();
  await using broker = redisBroker({ client, retryMs: 100 });
  await away[Symbol.asyncDispose]();
  await expect(broker.log.append('t', 'a')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringMatching(/ECONNREFUSED/),
  });
});

test('a plain client of one node is told that it takes a Cluster', async () => {
  const { server } = at(cluster.nodes, 0);
  const client = new Redis(server.port, { lazyConnect: true });
  await using broker = redisBroker({ client, prefix: 'plain' });
  const topic = topicAt(1, 'plain');
  await expect(broker.log.append(topic, 'a')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
});

test('a topic is read and written on its way from one server to another', async () => {
  const refused = () => Promise.all(cluster.nodes.map(({ client }) => client.acl('LOG')));
  await Promise.all(cluster.nodes.map(({ client }) => client.acl('LOG', 'RESET')));
  await using topic = openTopic({ client: userClient(), retryMs: 60_000, checkMs: 60_000 });
  const slot = keySlot(topic.key);
  const from = await holderOf(slot);
  const to = at(
    cluster.nodes.filter((node) => node !== from),
    0,
  );
  await topic.append('a');
  await using read = await liveRead(topic, await topic.tip());
  const move = new SlotMove(slot, from, to);
  await move.begin();
  await topic.append('not yet moved');
  await move.moveKeys();
  await topic.append('moved', 'in between');
  // Its key is on neither server: both say to try again, until the slot has moved.
  const keyed = topic.log.append(topic.topic, 'keyed', { idempotencyKey: 'k' });
  expect(await topic.values('earliest')).toEqual(['a', 'not yet moved', 'moved', 'in between']);
  await read.received(3);
  await move.finish();
  await eventually(async () => {
    const channels = await to.client.call('PUBSUB', 'SHARDCHANNELS');
    return String(channels).includes(topic.key);
  });
  await keyed;
  await topic.append('there');
  expect(await read.received(5)).toEqual([
    'not yet moved',
    'moved',
    'in between',
    'keyed',
    'there',
  ]);
  expect((await topic.log.append(topic.topic, 'keyed', { idempotencyKey: 'k' })).ordinal).toBe(5);
  expect((await refused()).flat()).toEqual([]);
});

test('a watch hears on where its topic has moved to, and is told that announcements may be missing', async () => {
  await using topic = openTopic({ client: userClient() });
  const slot = keySlot(topic.key);
  const from = await holderOf(slot);
  const to = at(
    cluster.nodes.filter((node) => node !== from),
    0,
  );
  const watching = await watch(topic.broker, topic.topic, { only: 'announcements' });
  const move = new SlotMove(slot, from, to);
  await move.begin();
  await move.moveKeys();
  await move.finish();
  expect(await watching.next()).toEqual({ kind: 'lagged', missed: undefined });
  // What is sent to the old place is lost: another comes when somebody has been told where to.
  announce(topic.broker, topic.topic, 'lost or not');
  await eventually(async () => {
    announce(topic.broker, topic.topic, 'there');
    return (await watching.next({ timeoutMs: 50 })).kind === 'announcement';
  });
  watching.close();
});

/** A client that knows one node, and may do no more than SECURITY.md says. */
function userClient(options: ClientOptions = {}): Cluster {
  return cluster.client({ ...options, redisOptions: USER }, [at(cluster.nodes, 0).server.port]);
}

async function clusterHarness(): Promise<BrokerHarness> {
  const client = cluster.client();
  const prefix = `laws-${crypto.randomUUID()}`;
  const retention = { trim: 'exact' } as const;
  const make = (under = prefix) =>
    redisBroker({ client: userClient(), prefix: under, checkMs: 50, retention });
  const broker = make();
  return {
    broker,
    peer: async () => make(),
    together: async () => make(`{${prefix}}`),
    trim: async (topic, keepCommits) => {
      await client.xtrim(`${prefix}:${topic}`, 'MAXLEN', '=', keepCommits);
    },
    drop: async (topic) => {
      await client.del(`${prefix}:${topic}`);
    },
    [Symbol.asyncDispose]: () => broker.close(),
  };
}

/** Topics of every server, of one broker. */
async function manyTopics(options: ClientOptions) {
  const client = userClient(options);
  const broker = redisBroker({ client, prefix: `many-${crypto.randomUUID()}` });
  return {
    async work(): Promise<void> {
      const topics = Array.from({ length: 12 }, (_, n) => `${n}`);
      const positions = await Promise.all(topics.map((topic) => broker.log.append(topic, 'a')));
      expect(positions.map(({ ordinal }) => ordinal)).toEqual(topics.map(() => 1));
    },
    [Symbol.asyncDispose]: () => broker.close(),
  };
}

async function setAll(name: string, value: string): Promise<void> {
  await Promise.all(cluster.nodes.map(({ client }) => client.config('SET', name, value)));
}

async function holderOf(slot: number) {
  const holder = await cluster.primaryOf(slot, at(cluster.nodes, 0));
  if (holder === undefined) throw new Error(`nobody holds slot ${slot}`);
  return holder;
}

/** A topic that the primary of an index does not hold. */
function topicAt(other: number, prefix: string): string {
  const size = 16384 / 3;
  for (let n = 0; ; n++) {
    const slot = keySlot(`${prefix}:${n}`);
    if (slot > other * size + 1 && slot < (other + 1) * size - 1) return `${n}`;
  }
}
