import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { freePort } from './free-port.ts';

export interface RedisServer {
  readonly url: string;
  close(): Promise<void>;
}

const BINARIES = ['redis-server', 'valkey-server'] as const;
const MIN_MAJOR = 7;

/** Runs a command for as long as our end of its stdin is open: not even a SIGKILL of the demo leaves a Redis behind. */
const WHILE_WE_LIVE = '"$@" & cat >/dev/null; kill $! 2>/dev/null; wait $!';

/** Starts a Redis of the demo's own, without persistence. Rejects where no binary of 7 or newer is on the PATH. */
export async function startRedis(): Promise<RedisServer> {
  const binary = await findBinary();
  const port = await freePort();
  const dir = mkdtempSync(join(tmpdir(), 'orders-redis-'));
  const removeDir = (): void => rmSync(dir, { recursive: true, force: true });
  process.once('exit', removeDir);
  const address = ['--bind', '127.0.0.1', '--port', String(port), '--dir', dir];
  const memoryOnly = ['--save', '', '--appendonly', 'no'];
  const child = spawn('sh', ['-c', WHILE_WE_LIVE, 'sh', binary, ...address, ...memoryOnly], {
    stdio: ['pipe', 'pipe', 'inherit'],
    // A process group of its own: Ctrl-C is for us, and Redis goes last.
    detached: true,
  });
  const exited = once(child, 'exit');
  const close = async (): Promise<void> => {
    child.stdin.end();
    await exited;
    removeDir();
  };
  for await (const line of createInterface(child.stdout)) {
    if (!line.includes('Ready to accept connections')) continue;
    // A full pipe would block the server.
    child.stdout.resume();
    return { url: `redis://127.0.0.1:${port}`, close };
  }
  await close();
  throw new Error(`${binary} ended before it was ready`);
}

async function findBinary(): Promise<string> {
  for (const name of BINARIES) {
    const answer = await promisify(execFile)(name, ['--version']).catch(() => undefined);
    const major = /v=(\d+)\./.exec(answer?.stdout ?? '')?.[1];
    if (Number(major) >= MIN_MAJOR) return name;
  }
  throw new Error(
    'two servers need a Redis 7 or newer: set REDIS_URL, or put redis-server or valkey-server on the PATH',
  );
}
