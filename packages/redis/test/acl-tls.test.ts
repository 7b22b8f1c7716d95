import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { announce, type CommitBroker, watch } from '@brokerfeed/core';
import { type RedisBrokerOptions, redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort, type RedisServer, startRedis } from '../../../test/support/redis.ts';
import { startCluster } from '../../../test/support/redis-cluster.ts';
import { USER, userRules } from './acl.ts';
import { LiveRead, valuesOf } from './support.ts';

const run = promisify(execFile);
/** Those that only clusters need: `cluster.test.ts` tries them. */
const CLUSTER_ONLY = ['+cluster|slots', '+asking'];

describe('a user with the rules of SECURITY.md', async () => {
  const rules = await userRules('brokerfeed');
  const needed = rules.filter((rule) => /^[+~&]/.test(rule) && !CLUSTER_ONLY.includes(rule));
  let server: RedisServer;
  let admin: Redis;

  beforeAll(async () => {
    server = await startRedis();
    admin = new Redis(server.port);
  });

  afterAll(async () => {
    admin.disconnect();
    await server[Symbol.asyncDispose]();
  });

  /** The user's broker does what brokers do. Answers what failed or was late, and what Redis refused in silence. */
  async function refusals(granted: readonly string[], lateMs: number): Promise<string[]> {
    await admin.flushall();
    await admin.acl('SETUSER', USER.username, 'reset', ...granted);
    await admin.acl('LOG', 'RESET');
    const failed: string[] = [];
    try {
      const client = new Redis({ port: server.port, ...USER, lazyConnect: true });
      // Closed also when it is late: it must not go on as the user of the next test.
      await using broker = quickBroker(client);
      await inTime(doEverything(broker, admin), lateMs);
    } catch (error) {
      failed.push(String(error));
    }
    // Typed loosely by ioredis: names and values in turn.
    const log = (await admin.acl('LOG')) as unknown as string[][];
    return [...failed, ...log.map((line) => String(line[line.indexOf('object') + 1]))];
  }

  test('may do all that a broker does', async () => {
    expect(await refusals(rules, 15_000)).toEqual([]);
  });

  test.each(needed)('needs %s', async (rule) => {
    const others = rules.filter((other) => other !== rule);
    expect(await refusals(others, 2_000)).not.toEqual([]);
  });
});

describe('over TLS, with a certificate that is trusted by itself', () => {
  let dir: string;
  let ca: string;

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'brokerfeed-tls-'));
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const files = ['-keyout', join(dir, 'key.pem'), '-out', join(dir, 'cert.pem')];
    const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    await run('openssl', ['req', '-x509', ...kind, '-days', '2', ...subject, ...files]);
    ca = await readFile(join(dir, 'cert.pem'), 'utf8');
  });

  afterAll(async () => {
    await rm(dir, { recursive: true, force: true });
  });

  test('a server is written and read', async () => {
    const tlsPort = await freePort();
    await using server = await startRedis({ args: tlsArgs(tlsPort) });
    const admin = new Redis(server.port);
    const client = new Redis({ port: tlsPort, tls: { ca }, lazyConnect: true });
    await using trusting = quickBroker(client);
    await doEverything(trusting, admin);
    const untrusting = new Redis({ port: tlsPort, tls: {}, lazyConnect: true });
    await using broker = redisBroker({ client: untrusting, retryMs: 0 });
    await expect(broker.log.append('t', 'a')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringMatching(/self-signed/),
    });
    admin.disconnect();
  });

  test('nodes of a cluster are too, by the redisOptions', async () => {
    const tlsPort = await freePort();
    const redisOptions = { tls: { ca }, ...USER };
    await using cluster = await startCluster({ primaries: 1, args: tlsArgs(tlsPort) });
    const admin = cluster.nodes[0]?.client as Redis;
    await admin.acl('SETUSER', USER.username, ...(await userRules('brokerfeed')));
    await admin.config('SET', 'requirepass', 'nobody knows');
    await using broker = quickBroker(cluster.client({ redisOptions }, [tlsPort]));
    await doEverything(broker, admin, { cluster: true });
  });

  function tlsArgs(port: number): string[] {
    const files = ['cert', 'key'].flatMap((name) => [
      `--tls-${name}-file`,
      join(dir, `${name}.pem`),
    ]);
    const trust = ['--tls-ca-cert-file', join(dir, 'cert.pem'), '--tls-auth-clients', 'no'];
    return ['--tls-port', String(port), '--tls-cluster', 'yes', ...files, ...trust];
  }
});

/** Rejects where it takes so long that it waits in vain. */
async function inTime(work: Promise<void>, lateMs: number): Promise<void> {
  const late = AbortSignal.timeout(lateMs);
  await Promise.race([work, once(late, 'abort').then(() => Promise.reject(new Error('late')))]);
}

function quickBroker(client: RedisBrokerOptions['client']): CommitBroker {
  const retention = { maxEntries: 100, maxAgeMs: 60_000, trim: 'exact' } as const;
  return redisBroker({ client, retention, checkMs: 100, retryMs: 500 });
}

/** Does with a broker what needs permissions, each thing in each way. */
async function doEverything(
  broker: CommitBroker,
  admin: Redis,
  { cluster = false } = {},
): Promise<void> {
  const { log } = broker;
  const watching = await watch(broker, 'u', { only: 'announcements' });
  announce(broker, 'u', 'x');
  expect(await watching.next()).toMatchObject({ value: 'x' });
  const parts = [{ topic: 'u', value: 'a' }];
  if (cluster) await log.appendAll(parts);
  else await log.appendAll([...parts, { topic: 'v', value: 'b' }], { idempotencyKey: 'k' });
  // A topic that is there and has no epoch yet.
  await admin.xadd('brokerfeed:t', '*', 'v', 'bare');
  const { last } = await log.bounds('t');
  await using read = new LiveRead(log, 't', last);
  await read.live;
  await log.append('t', 'a');
  await log.append('t', ['b', 'c'], { idempotencyKey: 'k', headers: { h: '1' } });
  await log.append('t', ['b', 'c'], { idempotencyKey: 'k', headers: { h: '1' } });
  await admin.script('FLUSH');
  await log.append('t', 'd');
  // Found by asking after the tip; the next one, soon after, by looking for more.
  for (const count of [4, 5]) {
    await admin.xadd('brokerfeed:t', '*', 'v', 'bare too');
    await read.received(count);
  }
  // Nobody announces that either.
  await admin.del('brokerfeed:t');
  await read.ended;
  const page = await log.page('t', 'earliest', 10);
  expect(page.verdict === 'ok' && valuesOf(page.commits)).toEqual([]);
}
