import { closeSync, fdatasync, openSync, readSync, statSync, write } from 'node:fs';

/** Writes buffers one after another to a new file, with one fdatasync after each where asked: what a disk can do. */
export async function plainWrites(
  path: string,
  groups: readonly Buffer[],
  sync: boolean,
): Promise<number> {
  const fd = openSync(path, 'w');
  const start = performance.now();
  try {
    for (const group of groups) {
      await new Promise<void>((resolve, reject) => {
        write(fd, group, 0, group.length, null, (error) => (error ? reject(error) : resolve()));
      });
      if (!sync) continue;
      await new Promise<void>((resolve, reject) => {
        fdatasync(fd, (error) => (error ? reject(error) : resolve()));
      });
    }
    return performance.now() - start;
  } finally {
    closeSync(fd);
  }
}

/** Reads files from end to end into one buffer, and answers the milliseconds and bytes. */
export function plainRead(paths: readonly string[]): { ms: number; bytes: number } {
  const buffer = Buffer.allocUnsafe(1024 * 1024);
  const start = performance.now();
  let bytes = 0;
  for (const path of paths) {
    const fd = openSync(path, 'r');
    for (let count = 1; count > 0; bytes += count)
      count = readSync(fd, buffer, 0, buffer.length, null);
    closeSync(fd);
  }
  return { ms: performance.now() - start, bytes };
}

export function sizeOf(paths: readonly string[]): number {
  return paths.reduce((sum, path) => sum + statSync(path).size, 0);
}
