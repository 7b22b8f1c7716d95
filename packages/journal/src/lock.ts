import { BrokerError, type Clock, type Logger } from '@brokerfeed/core';
import { errorCode, type FileSystem } from './file-system.ts';
import type { Layout } from './layout.ts';
import { isRunning, type ProcessIdentity, thisProcess } from './process-identity.ts';

/** What stands in a lock file. */
export interface LockOwner extends ProcessIdentity {
  readonly token: string;
}

const TOUCH_MS = 5_000;
/** An owner whose process we cannot see lives while it has touched the lock within this time. */
const UNSEEN_OWNER_MS = 20_000;
const MAX_ATTEMPTS = 100;

/** A folder that this process owns. */
export class FolderLock {
  readonly #fs: FileSystem;
  readonly #layout: Layout;
  readonly #token: string;
  readonly #clock: Clock;
  readonly #onLost: () => void;
  #stopTouching: () => void = () => {};

  private constructor(
    fs: FileSystem,
    layout: Layout,
    token: string,
    clock: Clock,
    onLost: () => void,
  ) {
    this.#fs = fs;
    this.#layout = layout;
    this.#token = token;
    this.#clock = clock;
    this.#onLost = onLost;
    this.#touchLater();
  }

  /** Takes the folder, from a dead owner too. Throws `UNAVAILABLE` with the pid of a living one. */
  static acquire(
    fs: FileSystem,
    layout: Layout,
    options: { clock: Clock; logger: Logger; onLost: () => void },
    self: ProcessIdentity = thisProcess(),
  ): FolderLock {
    const owner: LockOwner = { ...self, token: crypto.randomUUID() };
    const claim = `${layout.lock}.claim.${owner.token}`;
    // Complete before it has the name that others look at: a lock without an owner never exists.
    fs.writeFile(claim, Buffer.from(`${JSON.stringify(owner)}\n`), 'no-sync');
    try {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        if (tryAcquire(fs, layout, claim, owner, options.logger)) {
          return new FolderLock(fs, layout, owner.token, options.clock, options.onLost);
        }
      }
    } finally {
      fs.unlink(claim);
    }
    throw new BrokerError('UNAVAILABLE', `${layout.lock} changes owners too fast to be taken`);
  }

  /** Whether the folder is still ours. */
  held(): boolean {
    return readOwner(this.#fs, this.#layout.lock)?.token === this.#token;
  }

  release(): void {
    this.#stopTouching();
    if (this.held()) this.#fs.unlink(this.#layout.lock);
  }

  #touchLater(): void {
    this.#stopTouching = this.#clock.after(TOUCH_MS, () => {
      if (!this.held()) return this.#onLost();
      this.#fs.touch(this.#layout.lock);
      this.#touchLater();
    });
  }
}

/** One try: answers whether the folder is ours now; false where something changed meanwhile. */
function tryAcquire(
  fs: FileSystem,
  layout: Layout,
  claim: string,
  self: LockOwner,
  logger: Logger,
): boolean {
  if (linked(fs, claim, layout.lock)) return true;
  const owner = readOwner(fs, layout.lock);
  if (owner === undefined) return false;
  // Whoever began to take over from a dead owner stands in its place; if it died too, so does the next one.
  const takeovers: string[] = [];
  let holder = owner;
  for (;;) {
    refuseLiving(fs, layout, holder, takeovers.at(-1) ?? layout.lock);
    const takeover = `${layout.lock}.takeover.${holder.token}`;
    takeovers.push(takeover);
    if (linked(fs, claim, takeover)) break;
    const taker = readOwner(fs, takeover);
    if (taker === undefined) return false;
    holder = taker;
  }
  // Another may have finished its takeover, and removed the file whose place we took, after we read the lock.
  if (readOwner(fs, layout.lock)?.token !== owner.token) {
    fs.unlink(takeovers.at(-1) as string);
    return false;
  }
  const ours = `${claim}.lock`;
  fs.copy(claim, ours);
  fs.rename(ours, layout.lock);
  for (const takeover of takeovers.reverse()) fs.unlink(takeover);
  logger.warn({ dir: layout.dir, deadPid: owner.pid, pid: self.pid }, 'journal.lock.taken-over');
  return true;
}

function refuseLiving(fs: FileSystem, layout: Layout, owner: LockOwner, file: string): void {
  if (!isAlive(fs, owner, file)) return;
  throw new BrokerError(
    'UNAVAILABLE',
    `${layout.dir} belongs to process ${owner.pid} (${owner.space}): one process at a time may open a journal`,
  );
}

function isAlive(fs: FileSystem, owner: LockOwner, file: string): boolean {
  if (owner.space === thisProcess().space) return isRunning(owner);
  const modifiedMs = fs.stat(file)?.modifiedMs ?? 0;
  return Date.now() - modifiedMs < UNSEEN_OWNER_MS;
}

function linked(fs: FileSystem, claim: string, name: string): boolean {
  try {
    fs.link(claim, name);
    return true;
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false;
    throw error;
  }
}

/** Reads who owns a lock. A file that says nothing sensible, as after a power cut, belongs to nobody alive. */
function readOwner(fs: FileSystem, path: string): LockOwner | undefined {
  const bytes = fs.readFile(path);
  if (bytes === undefined) return undefined;
  try {
    const owner = JSON.parse(bytes.toString('utf8')) as LockOwner;
    if (typeof owner.token === 'string' && Number.isSafeInteger(owner.pid)) return owner;
  } catch {
    // Falls through: as dead as a lock can be.
  }
  return { pid: 0, token: 'unreadable', start: undefined, space: thisProcess().space };
}
