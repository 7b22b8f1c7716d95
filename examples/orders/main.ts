/**
 * The demo. Without flags: one server on a journal, in a folder; or two behind a proxy where `REDIS_URL` says where a Redis is.
 *
 *   --cluster    two servers, on a Redis of the demo's own if `REDIS_URL` is not set
 *   --smoke      no page: two clients, a killed server, and what they missed (nothing) and got twice (nothing)
 *   --memory     the memory broker, whatever else there is
 *   --port N     where to listen; a free port if it is taken. Default: 3000
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { runBoard } from './board.ts';
import { brokerKind } from './broker.ts';
import { type RedisServer, startRedis } from './redis-server.ts';
import { runSmoke } from './smoke.ts';

const { values: flags } = parseArgs({
  options: {
    cluster: { type: 'boolean', default: false },
    smoke: { type: 'boolean', default: false },
    memory: { type: 'boolean', default: false },
    port: { type: 'string', default: '3000' },
  },
});

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());

let redis: RedisServer | undefined;
try {
  const env = { ...process.env };
  if (flags.memory) env.ORDERS_BROKER = 'memory';
  else if (flags.cluster && brokerKind(env) !== 'redis') {
    redis = await startRedis();
    env.REDIS_URL = redis.url;
  }
  if (flags.smoke) {
    env.ORDERS_DIR = mkdtempSync(join(tmpdir(), 'orders-'));
    process.once('exit', () => rmSync(env.ORDERS_DIR as string, { recursive: true, force: true }));
    process.exitCode = (await runSmoke(env, stop.signal)) ? 0 : 1;
  } else {
    await runBoard(env, Number(flags.port), stop.signal);
  }
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await redis?.close();
}
process.exit();
