/** Load balancers of a test's own: nginx and HAProxy, as processes of this run. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort } from '../../examples/orders/free-port.ts';

export type BalancerKind = 'nginx' | 'haproxy';

export interface Balancer extends AsyncDisposable {
  readonly httpUrl: string;
  readonly wsUrl: string;
}

const PACKAGES = { nginx: 'nginx-light', haproxy: 'haproxy' } as const;
const INSTALL_SCRIPT = fileURLToPath(new URL('install-package.sh', import.meta.url));
const INSTALL_TIMEOUT_MS = 300_000;

/** Debian has servers where only root's PATH looks. */
const env = { ...process.env, PATH: `${process.env.PATH}:/usr/local/sbin:/usr/sbin` };

/** Runs a command for as long as our end of its third pipe is open: not even a SIGKILL of a test leaves it behind. */
const WHILE_WE_LIVE = '"$@" 3<&- & pid=$!; (cat <&3 >/dev/null; kill -9 $pid) & wait $pid';

const run = promisify(execFile);

/** Finds a program on the PATH; on Debian as root, installs it. Answers why not, where that fails. */
export async function whyNot(kind: BalancerKind): Promise<string | undefined> {
  const isThere = (): Promise<boolean> =>
    run(kind, ['-v'], { env }).then(
      () => true,
      () => false,
    );
  if (await isThere()) return undefined;
  if (!existsSync('/etc/debian_version'))
    return `${kind} is not on the PATH, and this is not Debian`;
  if (process.getuid?.() !== 0) return `${kind} is not on the PATH, and only root could install it`;
  const lock = join(tmpdir(), 'brokerfeed-install-package.lock');
  try {
    // Test files run in parallel: the second one waits, and finds it installed.
    await run('flock', [lock, 'sh', INSTALL_SCRIPT, kind, PACKAGES[kind]], {
      timeout: INSTALL_TIMEOUT_MS,
    });
    return (await isThere()) ? undefined : `${kind} was installed, and does not run`;
  } catch (error) {
    return `${kind} could not be installed: ${error instanceof Error ? error.message.trim() : error}`;
  }
}

/** Starts a balancer on a free port. `configure` answers its configuration for that port. */
export async function startBalancer(
  kind: BalancerKind,
  configure: (port: number) => string,
): Promise<Balancer> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-balancer-'));
  const file = join(dir, 'config');
  const config = configure(port);
  await writeFile(file, kind === 'nginx' ? nginxFile(dir, config) : `${config}\n`);
  // In the foreground, and one process each.
  const args = kind === 'nginx' ? ['-p', dir, '-c', file] : ['-db', '-f', file];
  const child = spawn('sh', ['-c', WHILE_WE_LIVE, 'sh', kind, ...args], {
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env,
  });
  const dispose = async (): Promise<void> => {
    const exited = hasExited(child) ? undefined : once(child, 'exit');
    child.stdio[3]?.destroy();
    await exited;
    await rm(dir, { recursive: true, force: true });
  };
  try {
    await untilListening(child, port);
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    httpUrl: `http://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: dispose,
  };
}

function nginxFile(dir: string, config: string): string {
  const temps = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
daemon off;
master_process off;
pid ${dir}/pid;
error_log stderr error;
events { worker_connections 4096; }
http {
  access_log off;
  ${temps.map((name) => `${name}_temp_path ${dir}/${name};`).join('\n  ')}
${config}
}
`;
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  let log = '';
  child.stderr?.on('data', (chunk) => {
    log = (log + chunk).slice(-4_000);
  });
  while (!hasExited(child)) {
    const socket = connect(port, '127.0.0.1');
    const listens = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (listens) return;
    await delay(10);
  }
  throw new Error(`the balancer ended before it listened:\n${log}`);
}

function hasExited(child: ChildProcess): boolean {
  return child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
}
