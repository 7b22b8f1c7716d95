/** A Chromium for the tests that need a real browser: found on the PATH, or installed from Debian's package. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';

/** Where a Chromium is, or why there is none, in words that say how to get one. */
export type FoundChromium = { readonly path: string } | { readonly whyNot: string };

/** Names under which systems have it; a Chrome will do. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'] as const;
const INSTALL_SCRIPT = fileURLToPath(new URL('install-package.sh', import.meta.url));
const INSTALL_TIMEOUT_MS = 600_000;
const LAUNCH_TIMEOUT_MS = 120_000;

/** Tests start servers, proxies and other browsers beside it: it takes what it is given. */
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] as const;

/** Finds a Chromium: `CHROMIUM_PATH`, the PATH, or Debian's package, which is installed where root runs the tests. */
export async function findChromium(): Promise<FoundChromium> {
  const wanted = process.env.CHROMIUM_PATH;
  if (wanted) {
    return existsSync(wanted) ? { path: wanted } : { whyNot: `CHROMIUM_PATH: no file ${wanted}` };
  }
  const found = onPath();
  if (found !== undefined) return { path: found };
  const reason = await install();
  const installed = onPath();
  if (installed !== undefined) return { path: installed };
  return {
    whyNot:
      'no Chromium is on the PATH, and CHROMIUM_PATH does not name one ' +
      `(Debian's package is installed where root runs the tests: ${reason ?? 'it has no binary'})`,
  };
}

/** Starts it, without a window. */
export function launchChromium(path: string): Promise<Browser> {
  return chromium.launch({ executablePath: path, args: [...FLAGS], timeout: LAUNCH_TIMEOUT_MS });
}

function onPath(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync);
}

/** Installs Debian's package, where there is one and we may. Answers why not. */
async function install(): Promise<string | undefined> {
  if (!existsSync('/etc/debian_version')) return 'this is not Debian';
  if (process.getuid?.() !== 0) return 'this is not root';
  console.log('Chromium: none found, installing it from its Debian package');
  const lock = join(tmpdir(), 'brokerfeed-install-package.lock');
  try {
    // Test files run in parallel: the second one waits, and finds it installed.
    const args = [lock, 'sh', INSTALL_SCRIPT, 'chromium', 'chromium'];
    await promisify(execFile)('flock', args, { timeout: INSTALL_TIMEOUT_MS });
    return undefined;
  } catch (error) {
    return `failed: ${error instanceof Error ? error.message.trim() : error}`;
  }
}
