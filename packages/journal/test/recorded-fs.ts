import type { FileSystem, ReadableFile, RepairFile, WritableFile } from '../src/file-system.ts';
import { applyToBytes, type DiskOp, folderOf } from './disk-model.ts';

interface OpenInode {
  readonly number: number;
  bytes: Buffer;
}

/** Fails one kind of call, once or until told otherwise: throws, or answers how many bytes of a write are taken. */
export interface Faults {
  write?: (bytes: Uint8Array) => number;
  sync?: () => void;
  truncate?: () => void;
  syncDir?: () => void;
}

/** A file system in memory that keeps a list of every call which changed it. */
export class RecordedFs implements FileSystem {
  readonly ops: DiskOp[] = [];
  /** How many of the calls made the files that it began with. */
  readonly setUpOps: number;
  readonly faults: Faults = {};
  /** Called before each sync of appended bytes resolves. */
  beforeSync: () => Promise<void> = async () => {};
  /** Called before each read. */
  beforeRead: () => Promise<void> = async () => {};
  readonly #names = new Map<string, OpenInode>();
  #inodes = 0;

  constructor(files: ReadonlyMap<string, Buffer> = new Map()) {
    for (const [path, bytes] of files) this.writeFile(path, bytes, 'sync');
    for (const path of files.keys()) this.syncDir(folderOf(path));
    this.setUpOps = this.ops.length;
  }

  get paths(): string[] {
    return [...this.#names.keys()].sort();
  }

  makeDir(): void {}

  list(path: string): string[] {
    return this.paths
      .filter((name) => folderOf(name) === path)
      .map((name) => name.slice(path.length + 1));
  }

  stat(path: string): { size: number; modifiedMs: number } | undefined {
    const inode = this.#names.get(path);
    return inode && { size: inode.bytes.length, modifiedMs: Date.now() };
  }

  readFile(path: string): Buffer | undefined {
    return this.#names.get(path)?.bytes;
  }

  writeFile(path: string, bytes: Uint8Array, sync: 'sync' | 'no-sync'): void {
    const inode = this.#make(path);
    this.#write(inode, bytes, 0);
    if (sync === 'sync') this.#syncNow(inode);
  }

  create(path: string): WritableFile {
    if (this.#names.has(path)) throw systemError('EEXIST');
    return this.#writable(this.#make(path));
  }

  openForRepair(path: string): RepairFile {
    const inode = this.#find(path);
    return {
      writeAt: (bytes, position) => this.#write(inode, bytes, position),
      truncate: (length) => this.#truncate(inode, length),
      dataSyncNow: () => this.#syncNow(inode),
      close: () => {},
    };
  }

  openForReading(path: string): ReadableFile {
    const inode = this.#find(path);
    const readNow = (into: Uint8Array, position: number): number =>
      inode.bytes.copy(into, 0, position);
    return {
      readNow,
      read: async (into, position) => {
        await this.beforeRead();
        return readNow(into, position);
      },
      close: () => {},
    };
  }

  rename(from: string, to: string): void {
    this.#names.set(to, this.#find(from));
    this.#names.delete(from);
    this.#record({ op: 'rename', from, to });
  }

  link(from: string, to: string): void {
    if (this.#names.has(to)) throw systemError('EEXIST');
    const inode = this.#find(from);
    this.#names.set(to, inode);
    this.#record({ op: 'link', path: to, inode: inode.number });
  }

  copy(from: string, to: string): void {
    this.writeFile(to, this.#find(from).bytes, 'no-sync');
  }

  unlink(path: string): void {
    if (this.#names.delete(path)) this.#record({ op: 'unlink', path });
  }

  syncDir(path: string): void {
    this.faults.syncDir?.();
    this.#record({ op: 'syncDir', path });
  }

  touch(): void {}

  #writable(inode: OpenInode): WritableFile {
    return {
      write: async (bytes) => {
        const taken = this.faults.write?.(bytes) ?? bytes.length;
        if (taken > 0) this.#write(inode, bytes.subarray(0, taken), inode.bytes.length);
        return taken;
      },
      dataSync: async () => {
        this.#record({ op: 'beginSync', inode: inode.number });
        await this.beforeSync();
        this.faults.sync?.();
        this.#record({ op: 'sync', inode: inode.number });
      },
      truncate: (length) => {
        this.faults.truncate?.();
        this.#truncate(inode, length);
      },
      close: () => {},
    };
  }

  #make(path: string): OpenInode {
    this.#inodes += 1;
    const inode = { number: this.#inodes, bytes: Buffer.alloc(0) };
    this.#names.set(path, inode);
    this.#record({ op: 'make', path, inode: inode.number });
    return inode;
  }

  #write(inode: OpenInode, bytes: Uint8Array, at: number): void {
    const op = { op: 'write', inode: inode.number, at, bytes: Buffer.from(bytes) } as const;
    inode.bytes = applyToBytes(inode.bytes, op);
    this.#record(op);
  }

  #syncNow({ number }: OpenInode): void {
    this.#record({ op: 'beginSync', inode: number });
    this.#record({ op: 'sync', inode: number });
  }

  #truncate(inode: OpenInode, length: number): void {
    const op = { op: 'truncate', inode: inode.number, length } as const;
    inode.bytes = applyToBytes(inode.bytes, op);
    this.#record(op);
  }

  #find(path: string): OpenInode {
    const inode = this.#names.get(path);
    if (inode === undefined) throw systemError('ENOENT');
    return inode;
  }

  #record(op: DiskOp): void {
    this.ops.push(op);
  }
}

/** An error as the system would make it. */
export function systemError(code: string): Error {
  return Object.assign(new Error(`${code}: made by a test`), { code });
}

/** Takes a few turns of the event loop, as a quick disk does. */
export async function quickDisk(): Promise<void> {
  for (let turns = 0; turns < 4; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}
