import { redisBroker } from '@brokerfeed/redis';
import { brokerFeed } from '@brokerfeed/trpc';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { startInstance, type TestInstance } from './support/instance.ts';
import { RawClient } from './support/raw-client.ts';
import { startRedis } from './support/redis.ts';
import { SIGNED, t } from './support/router.ts';

const CLIENTS = 200;

/** What a connection says for itself, once: not what its topics cost. */
const GREETINGS =
  /^(hello|info|select|auth|command|client\|(setname|setinfo|id)|config\|resetstat)$/;

/** Counts the commands that Redis got since the statistics were reset. Those that a script ran are not among them. */
async function commandsOf(redis: Redis): Promise<number> {
  const stats = await redis.info('commandstats');
  const scripted = /^(xinfo|xrange|xgroup|time)/;
  return [...stats.matchAll(/^cmdstat_([\w|]+):calls=(\d+)/gm)]
    .filter(([, name = '']) => !GREETINGS.test(name) && !scripted.test(name))
    .reduce((sum, [, , calls]) => sum + Number(calls), 0);
}

async function comeBack(
  instance: TestInstance,
  tokens: readonly (string | undefined)[],
): Promise<RawClient[]> {
  const clients = await Promise.all(tokens.map(() => RawClient.open(instance.wsUrl)));
  for (const [index, client] of clients.entries()) {
    client.subscribe(1, 'feed', { lastEventId: tokens[index] as string });
  }
  return clients;
}

test(`${CLIENTS} clients that come to another instance at once cost Redis a handful of commands`, async () => {
  await using redis = await startRedis();
  const control = new Redis(redis.url);
  const client = new Redis(redis.url, { lazyConnect: true });
  await using first = redisBroker({ client });
  await using second = redisBroker({ client, checkMs: 60_000 });
  const [old, next] = [first, second].map((broker) =>
    t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', { ...SIGNED, from: 'earliest' })),
    }),
  );
  await using instance = await startInstance(next as NonNullable<typeof next>);
  await using oldInstance = await startInstance(old as NonNullable<typeof old>);
  const reader = await RawClient.open(oldInstance.wsUrl);
  reader.subscribe(1, 'feed');
  for (let n = 0; n < 50; n += 1) await first.log.append('orders', String(n));
  await reader.take(1, 50);
  const tokens = reader
    .of(1)
    .flatMap(({ result }) => (result?.id === undefined ? [] : [result.id]));
  await reader[Symbol.asyncDispose]();
  // Its live read goes on for a moment, and its checks would be counted.
  await first.close();
  const values = Array.from({ length: 50 }, (_, n) => n);

  await control.config('RESETSTAT');
  const same = await comeBack(
    instance,
    Array.from({ length: CLIENTS }, () => tokens[19]),
  );
  for (const each of same) expect(await each.take(1, 30)).toEqual(values.slice(20));
  expect(await commandsOf(control)).toBeLessThanOrEqual(8);

  // They were not all cut off at one entry: a read for each of the ten, and still not for each client.
  await control.config('RESETSTAT');
  const spread = await comeBack(
    instance,
    Array.from({ length: CLIENTS }, (_, n) => tokens[20 + (n % 10)]),
  );
  for (const [n, each] of spread.entries()) {
    expect(await each.take(1, 29 - (n % 10))).toEqual(values.slice(21 + (n % 10)));
  }
  expect(await commandsOf(control)).toBeLessThanOrEqual(12);
  for (const each of [...same, ...spread]) each.ws.terminate();
  control.disconnect();
});
