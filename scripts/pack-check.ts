/**
 * Packs every package as it would be published, and checks the tarballs with publint and attw.
 * Wants a build. The tools are given tarballs of pnpm's making, since only those have
 * `publishConfig.exports` in place of the exports that point at sources.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const dir = mkdtempSync(join(tmpdir(), 'brokerfeed-pack-'));
try {
  run('pnpm', '-r', '--filter', './packages/*', 'pack', '--pack-destination', dir);
  for (const tarball of readdirSync(dir).sort()) {
    run('publint', '--strict', join(dir, tarball));
    run('attw', '--profile', 'esm-only', join(dir, tarball));
    console.log(`${tarball}: publint and attw are content`);
  }
} finally {
  rmSync(dir, { recursive: true });
}

/** Runs a tool; what it prints is of interest only when it fails. */
function run(command: string, ...args: string[]): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, { encoding: 'utf8' });
  if (status === 0) return;
  console.error(stdout, stderr);
  throw new Error(`${command} ${args.join(' ')} failed`, { cause: error });
}
