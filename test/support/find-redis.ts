import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { MIN_MAJOR, startRedis } from './redis.ts';

/** A Redis that answers, and how it was found. Disposing ends it where we started it. */
export interface FoundRedis extends AsyncDisposable {
  readonly url: string;
  readonly origin: string;
}

const IMAGE = 'redis:7-alpine';
const DOCKER_TIMEOUT_MS = 2_000;

const run = promisify(execFile);

/**
 * Finds the Redis of the test run: `REDIS_URL`, Docker, a binary on the PATH, or Debian's package.
 * Rejects with one sentence that lists the four; a `REDIS_URL` that fails is never passed over.
 */
export async function findRedis(): Promise<FoundRedis> {
  const url = process.env.REDIS_URL;
  if (url) return fromUrl(url);
  let noDocker: unknown;
  try {
    return await fromDocker();
  } catch (error) {
    noDocker = error;
  }
  try {
    return await fromBinary();
  } catch (error) {
    throw new Error(
      `the tests need a Redis ${MIN_MAJOR} or newer in one of four ways: REDIS_URL (not set), ` +
        `a Docker engine (${messageOf(noDocker)}), ${messageOf(error)}`,
    );
  }
}

async function fromUrl(url: string): Promise<FoundRedis> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  // ioredis rejects `connect` with a bare "Connection is closed"; the event has the cause.
  let cause: unknown;
  client.on('error', (error) => {
    cause ??= error;
  });
  try {
    await client.connect();
    const version = /redis_version:(\d+)\S*/.exec(await client.info('server'));
    if (Number(version?.[1]) < MIN_MAJOR) throw new Error(`it has ${version?.[0]}`);
  } catch (error) {
    const reason = messageOf(cause ?? error);
    throw new Error(`REDIS_URL does not lead to a Redis ${MIN_MAJOR} or newer: ${reason}`);
  } finally {
    client.disconnect();
  }
  return { url, origin: 'REDIS_URL', [Symbol.asyncDispose]: async () => {} };
}

async function fromDocker(): Promise<FoundRedis> {
  // The client alone is no engine, and asking it without a socket is slow on some machines.
  if (!process.env.DOCKER_HOST && !dockerSockets().some(existsSync)) throw new Error('no socket');
  try {
    await run('docker', ['version'], { timeout: DOCKER_TIMEOUT_MS });
  } catch (cause) {
    throw new Error('it does not answer', { cause });
  }
  // Loaded only here: it takes longer than most test files.
  const { GenericContainer, Wait } = await import('testcontainers');
  const container = await new GenericContainer(IMAGE)
    .withExposedPorts(6379)
    .withCommand(['redis-server', '--save', '', '--appendonly', 'no'])
    .withWaitStrategy(Wait.forLogMessage('Ready to accept connections'))
    .start();
  return {
    url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    origin: `${IMAGE} in Docker`,
    [Symbol.asyncDispose]: async () => {
      await container.stop();
    },
  };
}

async function fromBinary(): Promise<FoundRedis> {
  const server = await startRedis();
  return {
    url: server.url,
    origin: `a process of this run, pid ${server.pid}`,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function dockerSockets(): string[] {
  const runtimeDir = process.env.XDG_RUNTIME_DIR;
  return [
    '/var/run/docker.sock',
    join(homedir(), '.docker/run/docker.sock'),
    ...(runtimeDir ? [join(runtimeDir, 'docker.sock')] : []),
  ];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.trim() : String(error);
}
