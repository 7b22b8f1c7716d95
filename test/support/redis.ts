/**
 * Private Redis processes, for tests that kill, stop or restart their server.
 * A test that only needs *a* Redis takes the shared one: `inject('redisUrl')`.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export interface StartRedisOptions {
  /**
   * Added to the command line, after the defaults and so stronger: `['--appendonly', 'yes']`.
   * The server must keep its log on stdout, at level `notice`.
   */
  readonly args?: readonly string[];
  /** @default a free port of the loopback interface */
  readonly port?: number;
}

/** Oldest server that has what the Redis broker needs; Valkey counts its versions on from it. */
export const MIN_MAJOR = 7;

const BINARIES = ['redis-server', 'valkey-server'] as const;
const INSTALL_SCRIPT = fileURLToPath(new URL('install-redis.sh', import.meta.url));
const INSTALL_TIMEOUT_MS = 300_000;
const READY_TIMEOUT_MS = 15_000;
const PORT_ATTEMPTS = 5;

const run = promisify(execFile);

/** Starts a Redis process of the caller's own, empty and without persistence. Resolves when it answers PING. */
export async function startRedis(options: StartRedisOptions = {}): Promise<RedisServer> {
  const binary = await findRedisBinary();
  const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-redis-'));
  for (let attempt = 1; ; attempt++) {
    const server = new RedisServer(binary, dir, options.port ?? (await freePort()), options.args);
    try {
      await server.restart();
      return server;
    } catch (error) {
      // Another process may take a free port between our look and the server's bind.
      const retry = options.port === undefined && attempt < PORT_ATTEMPTS;
      if (retry && String(error).includes('Address already in use')) continue;
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }
}

export class RedisServer implements AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly #binary: string;
  readonly #dir: string;
  readonly #args: readonly string[];
  readonly #killAtExit = () => this.#child?.kill('SIGKILL');
  #child: ChildProcess | undefined;

  /** Takes over `dir`, and deletes it when disposed. Use `startRedis`. */
  constructor(binary: string, dir: string, port: number, args: readonly string[] = []) {
    this.port = port;
    this.url = `redis://127.0.0.1:${port}`;
    this.#binary = binary;
    this.#dir = dir;
    this.#args = args;
  }

  /** Process id of the newest start; the process may be gone. */
  get pid(): number {
    return this.#child?.pid ?? -1;
  }

  /** Sends the signal, and waits for the exit unless it is SIGSTOP or SIGCONT. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child;
    if (!child || hasExited(child)) return;
    const exited = once(child, 'exit');
    child.kill(signal);
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') return;
    await exited;
  }

  /**
   * Ends the process where it still runs, and starts one on the same port and directory, with more on its command line
   * where that is given. What it then holds is what its persistence kept: by default nothing.
   */
  async restart(args: readonly string[] = []): Promise<void> {
    // A stopped process keeps SIGTERM pending until it continues.
    this.#child?.kill('SIGCONT');
    await this.kill('SIGTERM');
    const child = spawn(this.#binary, [...this.#commandLine(), ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    await untilReady(child);
    await ping(this.port);
    process.off('exit', this.#killAtExit);
    process.once('exit', this.#killAtExit);
  }

  /** Deletes the dump that was saved. To be called while no process runs. */
  async forget(): Promise<void> {
    await rm(join(this.#dir, 'dump.rdb'), { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill('SIGKILL');
    process.off('exit', this.#killAtExit);
    await rm(this.#dir, { recursive: true, force: true });
  }

  #commandLine(): string[] {
    const address = ['--bind', '127.0.0.1', '--port', String(this.port), '--dir', this.#dir];
    return [...address, '--save', '', '--appendonly', 'no', ...this.#args];
  }
}

/** Finds a server binary on the PATH; on Debian as root, installs it. Rejects with both reasons. */
export async function findRedisBinary(): Promise<string> {
  const found = await binaryOnPath();
  if ('name' in found) return found.name;
  const installed = await install();
  if ('name' in installed) return installed.name;
  throw new Error(
    `redis-server or valkey-server on the PATH (${found.reason}), ` +
      `or Debian's redis-server package, installed where root runs the tests (${installed.reason})`,
  );
}

type Found = { readonly name: string } | { readonly reason: string };

async function binaryOnPath(): Promise<Found> {
  let reason = 'not there';
  for (const name of BINARIES) {
    const answer = await run(name, ['--version']).catch(() => undefined);
    if (!answer) continue;
    const version = /v=(\d+)\.\S+/.exec(answer.stdout);
    if (Number(version?.[1]) >= MIN_MAJOR) return { name };
    reason = `${name} ${version?.[0] ?? 'of unknown version'}, but ${MIN_MAJOR} or newer is needed`;
  }
  return { reason };
}

/** Installs redis-server from Debian's package, where there is one and we may. */
async function install(): Promise<Found> {
  if (!existsSync('/etc/debian_version')) return { reason: 'not Debian' };
  if (process.getuid?.() !== 0) return { reason: 'not root' };
  console.log('Redis: none found, installing redis-server from its Debian package');
  const lock = join(tmpdir(), 'brokerfeed-install-redis.lock');
  try {
    // Test files run in parallel: the second one waits, and finds it installed.
    await run('flock', [lock, 'sh', INSTALL_SCRIPT], { timeout: INSTALL_TIMEOUT_MS });
    return await binaryOnPath();
  } catch (error) {
    return { reason: `failed: ${error instanceof Error ? error.message.trim() : error}` };
  }
}

/** Finds a port of the loopback interface that nobody uses at the moment. */
export async function freePort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new Error('the probe has no port');
  return address.port;
}

/** Waits for the log line that says so. Rejects with the log when the process ends first. */
async function untilReady(child: ChildProcess): Promise<void> {
  if (!child.stdout || !child.stderr) throw new Error('the server was started without pipes');
  const deadline = AbortSignal.timeout(READY_TIMEOUT_MS);
  const log: string[] = [];
  // What is wrong with a command line comes on stderr.
  child.stderr.on('data', (chunk) => log.push(String(chunk)));
  const lines = createInterface({ input: child.stdout, signal: deadline });
  try {
    for await (const line of lines) {
      if (line.includes('Ready to accept connections')) return;
      log.push(line);
    }
  } finally {
    lines.close();
    // A full pipe would block the server.
    child.stdout.resume();
  }
  const why = deadline.aborted ? 'is not ready in time' : 'ended before it was ready';
  throw new Error(`redis-server ${why}:\n${log.join('\n')}`);
}

async function ping(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  try {
    socket.write('PING\r\n');
    const [reply] = await once(socket, 'data');
    // A server with a password answers too.
    if (!/^(\+PONG|-NOAUTH)/.test(String(reply))) throw new Error(`PING was answered by ${reply}`);
  } finally {
    socket.destroy();
  }
}

function hasExited(child: ChildProcess): boolean {
  // No pid: it never started.
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}
