/** A Chromium for the tests that need a real browser: found on the PATH, or installed from Debian's package. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Browser, chromium } from 'playwright-core';
import { vi } from 'vitest';

/** Where a Chromium is, or why there is none, in words that say how to get one. */
export type FoundChromium = { readonly path: string } | { readonly whyNot: string };

/** Names under which systems have it; a Chrome will do. */
const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'] as const;
const INSTALL_SCRIPT = fileURLToPath(new URL('install-package.sh', import.meta.url));
const INSTALL_TIMEOUT_MS = 600_000;
const LAUNCH_TIMEOUT_MS = 120_000;

/** Tests start servers, proxies and other browsers beside it: it takes what it is given. */
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--remote-debugging-port=0',
] as const;

/** What Playwright switches off, and what people have: a tab that is not seen gets little of the processor. */
const THROTTLING = [
  '--disable-background-timer-throttling',
  '--disable-backgrounding-occluded-windows',
  '--disable-renderer-backgrounding',
] as const;

/**
 * Finds a Chromium: `CHROMIUM_PATH`, the PATH, or Debian's package, which is installed where root runs the tests. Rejects
 * for a `CHROMIUM_PATH` that is no file.
 */
export async function findChromium(): Promise<FoundChromium> {
  const wanted = process.env.CHROMIUM_PATH;
  if (wanted) {
    if (!existsSync(wanted)) throw new Error(`CHROMIUM_PATH: there is no file ${wanted}`);
    return { path: wanted };
  }
  const found = onPath();
  if (found !== undefined) return { path: found };
  const reason = await install();
  const installed = onPath();
  if (installed !== undefined) return { path: installed };
  return {
    whyNot: `no Chromium is on the PATH, CHROMIUM_PATH does not name one, and ${reason ?? "Debian's package has none"}`,
  };
}

/** Starts it, with nothing on a screen. */
export function launchChromium(path: string): Promise<Browser> {
  return chromium.launch({
    executablePath: path,
    args: [...FLAGS],
    ignoreDefaultArgs: [...THROTTLING],
    timeout: LAUNCH_TIMEOUT_MS,
  });
}

/**
 * Joins it a second time, as one who only looks on: in the first context of what this answers, a tab behind another is
 * hidden. All other tabs are made by Playwright to believe that they are in front.
 */
export async function joinChromium(browser: Browser): Promise<Browser> {
  const session = await browser.newBrowserCDPSession();
  const { commandLine } = await session.send('SystemInfo.getInfo');
  await session.detach();
  const dir = /--user-data-dir=(\S+)/.exec(commandLine)?.[1] ?? '';
  // It is written when the port is open, which may be after Playwright has its pipe.
  const read = (): Promise<string> => readFile(join(dir, 'DevToolsActivePort'), 'utf8');
  const [port, path] = (await vi.waitFor(read, LAUNCH_TIMEOUT_MS)).split('\n');
  return chromium.connectOverCDP(`ws://127.0.0.1:${port}${path}`, { noDefaults: true });
}

function onPath(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(existsSync);
}

/** Installs Debian's package, where there is one and we may. Answers why not. */
async function install(): Promise<string | undefined> {
  if (!existsSync('/etc/debian_version')) return 'only on Debian is it installed';
  if (process.getuid?.() !== 0) return "only root can install Debian's package";
  console.log('Chromium: none found, installing it from its Debian package');
  const lock = join(tmpdir(), 'brokerfeed-install-package.lock');
  try {
    // Test files run in parallel: the second one waits, and finds it installed.
    const args = [lock, 'sh', INSTALL_SCRIPT, 'chromium', 'chromium'];
    await promisify(execFile)('flock', args, { timeout: INSTALL_TIMEOUT_MS });
    return undefined;
  } catch (error) {
    return `Debian's package could not be installed: ${error instanceof Error ? error.message.trim() : error}`;
  }
}
