import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../', import.meta.url);
const PEERS = new URL('../peers/', import.meta.url);
const PACKAGES = ['core', 'redis', 'trpc'] as const;

/** Installs the peers, unless what their lockfile says is there. */
export function installPeers(): void {
  // npm writes it last, so it tells that an install was finished.
  const installed = new URL('node_modules/.package-lock.json', PEERS);
  const lockfile = new URL('package-lock.json', PEERS);
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lockfile).mtimeMs) return;
  run(fileURLToPath(new URL('install', PEERS)));
}

/** Builds the packages. */
export function build(): void {
  run(fileURLToPath(new URL('node_modules/.bin/tsc', ROOT)), '-b');
}

/** Puts the packages beside the peers in the shape in which they are published: built, with `publishConfig` applied. */
export function placePackages(): void {
  for (const name of PACKAGES) {
    const from = new URL(`packages/${name}/`, ROOT);
    const to = new URL(`node_modules/@brokerfeed/${name}/`, PEERS);
    rmSync(to, { recursive: true, force: true });
    cpSync(new URL('dist/', from), new URL('dist/', to), { recursive: true });
    const { publishConfig, ...manifest } = JSON.parse(
      readFileSync(new URL('package.json', from), 'utf8'),
    ) as { readonly publishConfig: { readonly exports: unknown } };
    const published = { ...manifest, exports: publishConfig.exports };
    writeFileSync(new URL('package.json', to), JSON.stringify(published, undefined, 2));
  }
}

/** The version of each peer that is installed. */
export function peerVersions(): Readonly<Record<string, string>> {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', PEERS), 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  const versions = Object.keys(dependencies).map((name) => {
    const manifest = new URL(`node_modules/${name}/package.json`, PEERS);
    const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly version: string };
    return [name, version] as const;
  });
  return Object.fromEntries(versions);
}

function run(command: string, ...args: string[]): void {
  const { status, error } = spawnSync(command, args, {
    cwd: fileURLToPath(ROOT),
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error(`${command} failed`, { cause: error });
}
