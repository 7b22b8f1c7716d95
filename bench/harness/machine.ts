import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem } from 'node:os';

/** What the figures were measured on. */
export function machine(): Readonly<Record<string, string | number>> {
  return {
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    redis: redisVersion(),
  };
}

function redisVersion(): string {
  const text = execFileSync(process.env.REDIS_SERVER ?? 'redis-server', ['--version'], {
    encoding: 'utf8',
  });
  return /v=(\S+)/.exec(text)?.[1] ?? text.trim();
}
