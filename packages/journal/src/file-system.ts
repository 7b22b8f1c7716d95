import {
  close,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  ftruncateSync,
  linkSync,
  mkdirSync,
  openSync,
  read,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  utimesSync,
  write,
  writeFileSync,
  writeSync,
} from 'node:fs';

/**
 * What the journal asks of the file system, and no more: tests record these calls, cut them short and fail them.
 *
 * Opening and sealing are synchronous: they happen at start-up, or are a few microseconds. Appends and reads are not.
 */
export interface FileSystem {
  makeDir(path: string): void;
  /** Names in a folder, sorted; none where it does not exist. */
  list(path: string): string[];
  stat(path: string): { readonly size: number; readonly modifiedMs: number } | undefined;
  /** The whole file, or undefined where it does not exist. */
  readFile(path: string): Buffer | undefined;
  /** Makes or replaces a file in place. Only for what may be torn: temporary names. */
  writeFile(path: string, bytes: Uint8Array, sync: 'sync' | 'no-sync'): void;
  /** Opens for appending a file that does not exist yet. */
  create(path: string): WritableFile;
  /** Opens an existing file for writing at given places. */
  openForRepair(path: string): RepairFile;
  openForReading(path: string): ReadableFile;
  rename(from: string, to: string): void;
  /** Gives a file a second name, or throws `EEXIST`. */
  link(from: string, to: string): void;
  copy(from: string, to: string): void;
  unlink(path: string): void;
  /** Makes the names in a folder durable. */
  syncDir(path: string): void;
  /** Sets a file's time of modification to now. */
  touch(path: string): void;
}

/** A file that only grows. */
export interface WritableFile {
  /** Writes at the end, and resolves with how many bytes the system took. */
  write(bytes: Uint8Array): Promise<number>;
  dataSync(): Promise<void>;
  /** Cuts the file off. */
  truncate(length: number): void;
  close(): void;
}

export interface RepairFile {
  writeAt(bytes: Uint8Array, position: number): void;
  truncate(length: number): void;
  dataSyncNow(): void;
  close(): void;
}

export interface ReadableFile {
  /** Fills the buffer from a place, and resolves with how many bytes there were. */
  read(into: Uint8Array, position: number): Promise<number>;
  readNow(into: Uint8Array, position: number): number;
  close(): void;
}

/** The real one. */
export const nodeFileSystem: FileSystem = {
  makeDir: (path) => void mkdirSync(path, { recursive: true }),
  list: (path) => absent(() => readdirSync(path).sort()) ?? [],
  stat(path) {
    const found = statSync(path, { throwIfNoEntry: false });
    return found && { size: found.size, modifiedMs: found.mtimeMs };
  },
  readFile: (path) => absent(() => readFileSync(path)),
  writeFile(path, bytes, sync) {
    const fd = openSync(path, 'w');
    try {
      writeFileSync(fd, bytes);
      if (sync === 'sync') fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  },
  create: (path) =>
    writableFile(
      openSync(
        path,
        constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY | constants.O_APPEND,
      ),
    ),
  openForRepair: (path) => repairFile(openSync(path, 'r+')),
  openForReading: (path) => readableFile(openSync(path, 'r')),
  rename: renameSync,
  link: linkSync,
  copy: (from, to) => copyFileSync(from, to),
  unlink: (path) => void absent(() => unlinkSync(path)),
  syncDir(path) {
    // Windows has no handles of folders to sync; its file systems journal their names.
    if (process.platform === 'win32' || !existsSync(path)) return;
    const fd = openSync(path, 'r');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  },
  touch(path) {
    const now = new Date();
    utimesSync(path, now, now);
  },
};

function writableFile(fd: number): WritableFile {
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        write(fd, bytes, 0, bytes.length, null, (error, written) =>
          error ? reject(error) : resolve(written),
        );
      }),
    dataSync: () =>
      new Promise((resolve, reject) => {
        fdatasync(fd, (error) => (error ? reject(error) : resolve()));
      }),
    truncate: (length) => ftruncateSync(fd, length),
    // Asynchronous: the last reference to a large file may take long to let go.
    close: () => close(fd, () => {}),
  };
}

function repairFile(fd: number): RepairFile {
  return {
    writeAt(bytes, position) {
      for (let done = 0; done < bytes.length; ) {
        done += writeSync(fd, bytes, done, bytes.length - done, position + done);
      }
    },
    truncate: (length) => ftruncateSync(fd, length),
    dataSyncNow: () => fdatasyncSync(fd),
    close: () => closeSync(fd),
  };
}

function readableFile(fd: number): ReadableFile {
  return {
    read: (into, position) =>
      new Promise((resolve, reject) => {
        read(fd, into, 0, into.length, position, (error, count) =>
          error ? reject(error) : resolve(count),
        );
      }),
    readNow: (into, position) => readSync(fd, into, 0, into.length, position),
    close: () => closeSync(fd),
  };
}

/** Answers undefined for a file that does not exist. */
function absent<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** The system's code of an error, such as `ENOSPC`. */
export function errorCode(error: unknown): string | undefined {
  return (error as { code?: string } | null)?.code;
}
