import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startRedis } from '../../../test/support/redis.ts';
import { startSentinels } from '../../../test/support/redis-sentinel.ts';
import { eventually, LiveRead, openTopic } from './support.ts';
import { TopicLedger } from './topic-ledger.ts';

/** Longer than a failover takes, on a slow machine too. */
const PATIENCE_MS = 45_000;
const TOPICS = 10;

test('a primary that dies in mid-stream is replaced by the one that sentinels choose', async () => {
  await using set = await startSentinels();
  const client = set.client();
  await using broker = redisBroker({ client, checkMs: 1_000, retryMs: PATIENCE_MS });
  const { log } = broker;
  const topics = Array.from({ length: TOPICS }, (_, n) => `${n}`);
  await using ledger = new TopicLedger(log, topics, (topic, value) =>
    log.append(topic, value, { idempotencyKey: value }),
  );
  await ledger.start();
  await ledger.goesOn(5 * TOPICS);
  const before = await set.primary();
  await before?.server.kill('SIGKILL');
  await ledger.goesOn(5 * TOPICS);
  expect(await set.primary()).not.toBe(before);
  expect(await ledger.problems()).toEqual([]);
  expect(client.status).toBe('wait');
});

test('sentinels of which none answers make every call unavailable, in time', async () => {
  const client = new Redis({
    sentinels: [{ host: '127.0.0.1', port: 1 }],
    name: 'main',
    lazyConnect: true,
  });
  await using broker = redisBroker({ client, retryMs: 200 });
  await expect(broker.log.append('t', 'a')).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringMatching(/All sentinels are unreachable/),
  });
});

test.each([
  { writes: 'nothing more', more: 0, told: 'ahead' },
  { writes: 'as much again', more: 3, told: 'forked' },
])(
  'a replica that lacks the last commits is promoted by hand and gets $writes: $told',
  async ({ more, told }) => {
    const args = ['--repl-diskless-sync-delay', '0'];
    await using first = await startRedis({ args });
    await using second = await startRedis({ args });
    await using address = await startAddress(first.port);
    const client = new Redis(address.port, { lazyConnect: true });
    await using topic = openTopic({ client, checkMs: 200, retryMs: PATIENCE_MS });
    const [old, promoted] = [new Redis(first.port), new Redis(second.port)];
    await topic.append('a');
    await using read = new LiveRead(topic.log, topic.topic, await topic.tip());
    await read.live;
    await promoted.replicaof('127.0.0.1', first.port);
    await eventually(async () => (await promoted.xlen(topic.key)) === 1);
    await promoted.replicaof('NO', 'ONE');
    await topic.append('lost', 'lost too');
    await read.received(2);
    // The log that the old primary then has is the promoted one's.
    await old.replicaof('127.0.0.1', second.port);
    await eventually(async () => (await old.xlen(topic.key)) === 1);
    const appends = Array.from({ length: more }, (_, n) => topic.log.append(topic.topic, `${n}`));
    // They are refused by the replica, and wait for a primary.
    address.move(second.port);
    const positions = await Promise.all(appends);
    expect(positions.map(({ ordinal }) => ordinal)).toEqual(appends.map((_, n) => n + 2));
    expect(await read.ended).toBe(told);
    old.disconnect();
    promoted.disconnect();
  },
);

/** An address that leads to one server, then to another, as a name or a virtual one does: open connections stay. */
async function startAddress(port: number) {
  const links = new Set<Socket>();
  let target = port;
  const server = createServer((inward) => {
    const outward = connect(target, '127.0.0.1');
    for (const socket of [inward, outward]) {
      links.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        links.delete(socket);
        inward.destroy();
        outward.destroy();
      });
    }
    inward.pipe(outward).pipe(inward);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return {
    port: address.port,
    move(to: number): void {
      target = to;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of links) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
