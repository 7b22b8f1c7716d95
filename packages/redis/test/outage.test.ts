import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startRedis } from '../../../test/support/redis.ts';
import { connections, eventually, liveRead, openTopic } from './support.ts';

test('a restart of the server is invisible to live reads, and to appends with a key', async () => {
  await using redis = await startRedis({ args: ['--appendonly', 'yes'] });
  await using topic = openTopic({ url: redis.url });
  await topic.append('a');
  await using read = await liveRead(topic, await topic.tip());
  await redis.kill();
  // Without a key nobody could know whether it was written.
  const append = topic.log.append(topic.topic, 'b', { idempotencyKey: 'k' });
  await redis.restart();
  await append;
  await topic.append('c');
  expect(await read.received(2)).toEqual(['b', 'c']);
});

test('a server that stays away makes every call unavailable, without a busy loop', async () => {
  await using redis = await startRedis();
  await using proxy = await startProxy(redis.port);
  await using topic = openTopic({ url: redis.url });
  const client = new Redis({ port: proxy.port, lazyConnect: true });
  await using broker = redisBroker({ client, prefix: topic.prefix, retryMs: 1_500 });
  await broker.log.append(topic.topic, 'a');
  await using read = await liveRead({ ...topic, log: broker.log }, await topic.tip());
  await eventually(async () => proxy.open() === 2);
  await redis.kill();
  const unavailable = { code: 'UNAVAILABLE' };
  await Promise.all([
    expect(read.ended).rejects.toMatchObject(unavailable),
    expect(broker.log.append(topic.topic, 'b')).rejects.toMatchObject(unavailable),
    expect(broker.log.page(topic.topic, 'latest', 0)).rejects.toMatchObject(unavailable),
  ]);
  expect(proxy.accepted()).toBeLessThan(20);
  await redis.restart();
  expect((await broker.log.append(topic.topic, 'c')).ordinal).toBe(1);
});

test('a server that still loads its data is unavailable in time, and used once it has', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url, retryMs: 200 });
  await topic.append('a');
  const others = topic.client.pipeline();
  for (let n = 0; n < 1_000; n += 1) others.set(`other ${n}`, 'x'.repeat(100));
  await others.exec();
  await topic.client.save();
  await redis.kill();
  const slow = ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024'];
  let state: 'loading' | 'ready' = 'loading';
  const restarted = redis.restart(slow).then(() => {
    state = 'ready';
  });
  const admin = new Redis(redis.port, { enableReadyCheck: false, retryStrategy: () => 10 });
  admin.on('error', () => {});
  await eventually(async () => /loading:1/.test(await admin.info('persistence')));
  await expect(topic.log.append(topic.topic, 'b')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringMatching(/loading/),
  });
  expect(state).toBe('loading');
  await restarted;
  await topic.append('c');
  expect(await topic.values('earliest')).toEqual(['a', 'c']);
  admin.disconnect();
});

test('a server that was never there is unavailable, and the error says why', async () => {
  const client = new Redis({ host: '127.0.0.1', port: 1, lazyConnect: true });
  await using broker = redisBroker({ client, retryMs: 100 });
  const failed = broker.log.append('t', 'a');
  await expect(failed).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    cause: { code: 'ECONNREFUSED' },
  });
  expect(client.status).toBe('wait');
});

test('a database that the server does not have is unavailable, and nothing is written to another', async () => {
  await using topic = openTopic();
  const { host, port } = topic.client.options as { host: string; port: number };
  const client = new Redis({ host, port, db: 99_999, lazyConnect: true });
  await using broker = redisBroker({ client, prefix: topic.prefix, retryMs: 0 });
  await expect(broker.log.append(topic.topic, 'a')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringMatching(/DB index/),
  });
  expect(await topic.client.exists(topic.key)).toBe(0);
});

test('a link that goes silent without closing is given up, and what it hid is delivered', async () => {
  await using redis = await startRedis();
  await using proxy = await startProxy(redis.port);
  await using topic = openTopic({ url: redis.url });
  await using broker = redisBroker({
    client: new Redis({ port: proxy.port, lazyConnect: true }),
    prefix: topic.prefix,
    checkMs: 200,
    replyTimeoutMs: 200,
  });
  const through = { ...topic, broker, log: broker.log };
  await topic.append('a');
  await using read = await liveRead(through, await topic.tip());
  await eventually(async () => proxy.open() === 2);
  proxy.silence();
  await topic.append('b');
  expect(await read.received(1)).toEqual(['b']);
  const idempotencyKey = 'k';
  proxy.silence();
  const position = await broker.log.append(topic.topic, 'c', { idempotencyKey });
  expect(position.ordinal).toBe(3);
});

test('an append whose answer is lost is not sent again by itself; with a key it is, and written once', async () => {
  await using redis = await startRedis();
  await using proxy = await startProxy(redis.port);
  await using topic = openTopic({ url: redis.url });
  const client = new Redis({ port: proxy.port, lazyConnect: true });
  await using broker = redisBroker({ client, prefix: topic.prefix, replyTimeoutMs: 200 });
  await broker.log.append(topic.topic, 'a');
  proxy.deafen();
  await expect(broker.log.append(topic.topic, 'b')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
  expect(await topic.values('earliest')).toEqual(['a', 'b']);
  await broker.log.bounds(topic.topic);
  proxy.deafen();
  const position = await broker.log.append(topic.topic, 'c', { idempotencyKey: 'k' });
  expect(position.ordinal).toBe(3);
  expect(await topic.values('earliest')).toEqual(['a', 'b', 'c']);
});

test('a primary that becomes a replica is tried again until it is one again', async () => {
  await using redis = await startRedis();
  await using other = await startRedis();
  await using topic = openTopic({ url: redis.url });
  const [first] = await topic.append('a');
  await using read = await liveRead(topic, await topic.tip());
  const ours = async () => (await connections(topic.client, 'brokerfeed')).at(-1)?.id;
  const before = await ours();
  await topic.client.replicaof('127.0.0.1', other.port);
  const append = topic.log.append(topic.topic, 'b', { idempotencyKey: 'k' });
  // Refused, it asks for the primary again.
  await eventually(async () => {
    const now = await ours();
    return now !== undefined && now !== before;
  });
  await topic.client.replicaof('NO', 'ONE');
  const position = await append;
  // Either nothing was taken over from the empty primary yet, or all was lost.
  if (position.epoch === first?.epoch) expect(await read.received(1)).toEqual(['b']);
  else expect(await read.ended).toBe('epoch');
});

test('a user who may not run scripts is told so', async () => {
  await using redis = await startRedis();
  await using topic = openTopic({ url: redis.url });
  await topic.client.acl('SETUSER', 'weak', 'on', '>pw', '~*', '+@all', '-evalsha', '-eval');
  const client = new Redis({
    port: redis.port,
    username: 'weak',
    password: 'pw',
    lazyConnect: true,
  });
  await using broker = redisBroker({ client });
  await expect(broker.log.append('t', 'a')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
});

interface Proxy extends AsyncDisposable {
  readonly port: number;
  open(): number;
  /** Connections there ever were. */
  accepted(): number;
  /** Connections so far pass nothing on any more, and stay open. */
  silence(): void;
  /** Connections so far hand on requests, but no replies. */
  deafen(): void;
}

async function startProxy(target: number): Promise<Proxy> {
  const links = new Set<{ readonly inward: Socket; readonly outward: Socket }>();
  let accepted = 0;
  const server: Server = createServer((inward) => {
    accepted += 1;
    const outward = connect(target, '127.0.0.1');
    const link = { inward, outward };
    links.add(link);
    inward.pipe(outward);
    outward.pipe(inward);
    inward.on('error', () => {});
    outward.on('error', () => inward.destroy());
    inward.on('close', () => {
      links.delete(link);
      outward.destroy();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
    open: () => links.size,
    accepted: () => accepted,
    silence() {
      for (const { inward, outward } of links) {
        inward.unpipe();
        outward.unpipe();
        inward.resume();
        outward.resume();
      }
    },
    deafen() {
      for (const { outward } of links) {
        outward.unpipe();
        outward.resume();
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { inward } of links) inward.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
