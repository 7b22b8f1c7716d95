/** One call that changed the disk. */
export type DiskOp =
  | { readonly op: 'make'; readonly path: string; readonly inode: number }
  | { readonly op: 'link'; readonly path: string; readonly inode: number }
  | { readonly op: 'rename'; readonly from: string; readonly to: string }
  | { readonly op: 'unlink'; readonly path: string }
  | { readonly op: 'write'; readonly inode: number; readonly at: number; readonly bytes: Buffer }
  | { readonly op: 'truncate'; readonly inode: number; readonly length: number }
  /** A sync covers what was written before it began, and is worth nothing until it ends. */
  | { readonly op: 'beginSync' | 'sync'; readonly inode: number }
  | { readonly op: 'syncDir'; readonly path: string };

/**
 * What became of the calls before the crash that no sync covered.
 *
 * - `killed`: the process ended, the machine went on: everything was done.
 * - `lost`: the power went, and nothing of it had reached the disk.
 * - `zeros`: files have their new length, and zeros where nothing had reached the disk.
 * - `late half`: of each write the second half had reached the disk, the first is zeros.
 * - `early half`: of each write the first half had, and the file ends there.
 */
export const CRASHES = ['killed', 'lost', 'zeros', 'late half', 'early half'] as const;
export type Crash = (typeof CRASHES)[number];

interface Inode {
  cached: Buffer;
  synced: Buffer;
  unsynced: Extract<DiskOp, { op: 'write' | 'truncate' }>[];
  /** What the sync under way covers. */
  syncing: { readonly bytes: Buffer; readonly ops: number };
}

type NameOp = Extract<DiskOp, { op: 'make' | 'link' | 'rename' | 'unlink' }>;

/** A disk with a cache in front of it, built up from calls. */
export class DiskModel {
  readonly #inodes = new Map<number, Inode>();
  #names = new Map<string, number>();
  #syncedNames = new Map<string, number>();
  #unsyncedNames: NameOp[] = [];

  apply(op: DiskOp): void {
    switch (op.op) {
      case 'make':
        this.#inodes.set(op.inode, {
          cached: Buffer.alloc(0),
          synced: Buffer.alloc(0),
          unsynced: [],
          syncing: { bytes: Buffer.alloc(0), ops: 0 },
        });
        this.#name(op);
        return;
      case 'link':
      case 'rename':
      case 'unlink':
        this.#name(op);
        return;
      case 'write':
      case 'truncate': {
        const inode = this.#inode(op.inode);
        inode.cached = applyToBytes(inode.cached, op);
        inode.unsynced.push(op);
        return;
      }
      case 'beginSync': {
        const inode = this.#inode(op.inode);
        inode.syncing = { bytes: inode.cached, ops: inode.unsynced.length };
        return;
      }
      case 'sync': {
        const inode = this.#inode(op.inode);
        inode.synced = inode.syncing.bytes;
        inode.unsynced = inode.unsynced.slice(inode.syncing.ops);
        return;
      }
      case 'syncDir': {
        const here = (name: NameOp): boolean => folderOf(targetOf(name)) === op.path;
        for (const name of this.#unsyncedNames.filter(here)) applyToNames(this.#syncedNames, name);
        this.#unsyncedNames = this.#unsyncedNames.filter((name) => !here(name));
        return;
      }
      default:
        op satisfies never;
    }
  }

  /** The files that are found after a crash. */
  files(crash: Crash): Map<string, Buffer> {
    const names = crash === 'lost' ? this.#syncedNames : this.#names;
    const files = new Map<string, Buffer>();
    for (const [path, number] of names) files.set(path, contentAfter(this.#inode(number), crash));
    return files;
  }

  #name(op: NameOp): void {
    applyToNames(this.#names, op);
    this.#unsyncedNames.push(op);
  }

  #inode(number: number): Inode {
    const inode = this.#inodes.get(number);
    if (inode === undefined) throw new Error(`no inode ${number}`);
    return inode;
  }
}

function contentAfter(inode: Inode, crash: Crash): Buffer {
  if (crash === 'killed') return inode.cached;
  if (crash === 'lost') return inode.synced;
  let bytes = inode.synced;
  for (const op of inode.unsynced) {
    if (op.op === 'truncate') bytes = applyToBytes(bytes, op);
    else bytes = applyToBytes(bytes, { ...op, bytes: damagedWrite(op.bytes, crash) });
  }
  return bytes;
}

function damagedWrite(bytes: Buffer, crash: 'zeros' | 'late half' | 'early half'): Buffer {
  const half = bytes.length >> 1;
  if (crash === 'early half') return bytes.subarray(0, half);
  const damaged = Buffer.alloc(bytes.length);
  if (crash === 'late half') bytes.copy(damaged, half, half);
  return damaged;
}

export function applyToBytes(
  bytes: Buffer,
  op: Extract<DiskOp, { op: 'write' | 'truncate' }>,
): Buffer {
  const length = op.op === 'truncate' ? op.length : Math.max(bytes.length, op.at + op.bytes.length);
  const changed = Buffer.alloc(length);
  bytes.copy(changed);
  if (op.op === 'write') op.bytes.copy(changed, op.at);
  return changed;
}

function applyToNames(names: Map<string, number>, op: NameOp): void {
  switch (op.op) {
    case 'make':
    case 'link':
      names.set(op.path, op.inode);
      return;
    case 'rename': {
      const inode = names.get(op.from);
      names.delete(op.from);
      if (inode !== undefined) names.set(op.to, inode);
      return;
    }
    case 'unlink':
      names.delete(op.path);
      return;
    default:
      op satisfies never;
  }
}

function targetOf(op: NameOp): string {
  return op.op === 'rename' ? op.to : op.path;
}

export function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}
