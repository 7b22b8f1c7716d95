import { randomInt } from 'node:crypto';
import {
  Audience,
  type Bounds,
  BrokerError,
  type Loss,
  type Page,
  type Position,
  type Sink,
  type Start,
} from '@brokerfeed/core';
import type { Appended, Control, TopicWrite } from './append-job.ts';
import { Caches } from './caches.ts';
import { type FileSystem, nodeFileSystem } from './file-system.ts';
import { checkDigest, keyScope, valuesDigest } from './idempotency-keys.ts';
import { IndexStore } from './index-store.ts';
import type { JournalState } from './journal-state.ts';
import { Layout } from './layout.ts';
import { LiveReads } from './live-reads.ts';
import { FolderLock } from './lock.ts';
import type { ResolvedJournalOptions } from './options.ts';
import { PageReader } from './page-reader.ts';
import { recover } from './recovery.ts';
import { discardSegment } from './retention.ts';
import { SegmentFiles } from './segment-files.ts';
import { SegmentWriter } from './segment-writer.ts';
import { Writer } from './writer.ts';

/** Commits that a live read hands over at a time while it catches up. */
const FOLLOW_COMMITS = 256;
/** The longest line: a commit that is larger could be neither printed nor read in one piece. */
const MAX_COMMIT_BYTES = 64 * 1024 * 1024;
const BOOTS = 2 ** 48 - 1;

/** An open folder. Brokers on it are instances of one service. */
export class Journal {
  /** Who hears what is announced, on every broker of the folder: all are in this process. */
  readonly audience: Audience = new Audience();
  readonly #options: ResolvedJournalOptions;
  readonly #lock: FolderLock;
  readonly #state: JournalState;
  readonly #files: SegmentFiles;
  readonly #pages: PageReader;
  readonly #live: LiveReads;
  readonly #writer: Writer;
  /** Appends with a key that are on their way to the disk. */
  readonly #pending = new Map<string, { digest: string; appended: Promise<Appended> }>();
  #closed: Promise<void> | undefined;

  /** Opens the folder: takes its lock and recovers what it holds. Synchronous, since nothing can go on without it. */
  constructor(options: ResolvedJournalOptions, fs: FileSystem = nodeFileSystem) {
    const layout = new Layout(options.dir);
    const { clock, observer } = options;
    const { logger } = observer;
    const boot = randomInt(1, BOOTS);
    this.#options = options;
    fs.makeDir(layout.dir);
    this.#lock = FolderLock.acquire(fs, layout, {
      clock,
      logger,
      onLost: () => this.#writer.break(new Error(`another process took ${layout.lock}`)),
    });
    try {
      const caches = new Caches(fs, layout, logger);
      const remove = (first: number): boolean => {
        try {
          discardSegment(fs, layout, options.archiveDir, first);
          caches.dropIndex(first);
          return true;
        } catch (error) {
          // It only takes room. What cannot be archived must hinder no append.
          logger.error({ file: layout.segment(first), err: error }, 'journal.segment.not-removed');
          return false;
        }
      };
      this.#files = new SegmentFiles(fs, layout, remove);
      const discard = (first: number): void => this.#files.removeWhenUnread(first);
      const now = clock.now();
      this.#state = recover({ fs, layout, caches, logger, keys: options.keys, boot, now, discard });
      const indexes = new IndexStore(this.#files, caches, layout, logger);
      this.#pages = new PageReader(this.#state, this.#files, indexes, layout, boot);
      this.#live = new LiveReads(this.#state);
      const file = new SegmentWriter({
        fs,
        layout,
        caches,
        state: this.#state,
        options,
        boot,
        onSealed: (segment) => indexes.release(segment),
        onRetired: discard,
      });
      this.#writer = new Writer({
        file,
        state: this.#state,
        options,
        onApplied: (records) => this.#live.deliver(records),
      });
    } catch (error) {
      this.#lock.release();
      throw error;
    }
  }

  /** Appends one commit to each topic, all in one record. Throws where it is refused at once. */
  append(
    writes: readonly TopicWrite[],
    key: string | undefined,
    all: boolean,
    resolve: (appended: Appended) => void,
    reject: (error: unknown) => void,
  ): void {
    this.#checkOpen();
    const size = checkSize(writes);
    if (key !== undefined) this.#appendOnce(writes, size, key, all).then(resolve, reject);
    else this.#writer.submit({ kind: 'append', writes, size, key, all, resolve, reject });
  }

  /** Appends unless the key's append is known: then answers what that one wrote, or is about to. */
  #appendOnce(
    writes: readonly TopicWrite[],
    size: number,
    key: string,
    all: boolean,
  ): Promise<Appended> {
    const scope = keyScope(all ? undefined : writes[0]?.topic, key);
    const digest = digestOf(writes, all);
    const pending = this.#pending.get(scope);
    if (pending !== undefined) {
      checkDigest(pending.digest, digest);
      return pending.appended;
    }
    const earlier = this.#findKeyed(scope, digest, all ? undefined : writes[0]?.topic);
    if (earlier !== undefined) {
      const { sequence, positions } = earlier;
      return Promise.resolve({ sequence, positions });
    }
    const appended = new Promise<Appended>((resolve, reject) => {
      this.#writer.submit({ kind: 'append', writes, size, key, all, resolve, reject });
    });
    this.#pending.set(scope, { digest, appended });
    const settled = (): void => void this.#pending.delete(scope);
    appended.then(settled, settled);
    return appended;
  }

  page(topic: string, start: Start, limit: number): Promise<Page> {
    this.#checkOpen();
    return this.#pages.page(topic, start, limit);
  }

  bounds(topic: string): Bounds {
    this.#checkOpen();
    return this.#state.topic(topic).bounds();
  }

  /** Reads live until `signal` or `closing` aborts. */
  async follow(
    name: string,
    from: Position,
    sink: Sink,
    signal: AbortSignal,
    closing: AbortSignal,
  ): Promise<Loss | undefined> {
    const { verdict } = await this.page(name, from, 0);
    if (signal.aborted) return undefined;
    if (verdict !== 'ok') return verdict;
    sink.live();
    let position = from;
    while (!signal.aborted) {
      if (closing.aborted) return undefined;
      const topic = this.#state.topic(name);
      if (topic.epoch === position.epoch && topic.last === position.ordinal) {
        return this.#live.join(topic, sink, signal, closing);
      }
      const page = await this.page(name, position, FOLLOW_COMMITS);
      if (signal.aborted || closing.aborted) return undefined;
      if (page.verdict !== 'ok') return page.verdict;
      position = page.commits.at(-1)?.position ?? position;
      sink.commits(page.commits);
    }
    return undefined;
  }

  /** Removes all but the newest commits of a topic. Their bytes go with segments of which nothing is left. */
  trim(topic: string, keepCommits: number): Promise<void> {
    return this.#control(() => {
      const { last, floor } = this.#state.topic(topic);
      const to = last - keepCommits;
      return to > floor ? [{ trim: topic, floor: to }] : [];
    });
  }

  /** Deletes a topic. What is read from it or written to it next belongs to a new incarnation. */
  drop(topic: string): Promise<void> {
    const salt = Buffer.from(crypto.getRandomValues(new Uint8Array(9))).toString('base64url');
    return this.#control(() => [{ drop: topic, salt }]);
  }

  /** Resolves when every write that was begun before has been resolved or rejected. */
  settled(): Promise<void> {
    if (this.#closed !== undefined) return this.#closed;
    return new Promise((resolve) => {
      const decide = (): readonly Control[] => [];
      this.#writer.submit({ kind: 'control', decide, resolve, reject: () => resolve() });
    });
  }

  /** Waits for appends under way, leaves a checkpoint and gives the folder back. */
  close(): Promise<void> {
    this.#closed ??= this.#writer.close().then(() => {
      this.#files.close();
      this.#lock.release();
    });
    return this.#closed;
  }

  #control(decide: () => readonly Control[]): Promise<void> {
    this.#checkOpen();
    return new Promise((resolve, reject) => {
      this.#writer.submit({ kind: 'control', decide, resolve, reject });
    });
  }

  #findKeyed(scope: string, digest: string, topic: string | undefined): Appended | undefined {
    // The key of a topic that was dropped belongs to the incarnation that is gone.
    if (topic !== undefined) {
      const { epoch } = this.#state.topic(topic);
      const known = this.#state.keys.peek(scope);
      if (known !== undefined && known.positions[0]?.epoch !== epoch) {
        this.#state.keys.forget(scope);
      }
    }
    return this.#state.keys.find(scope, digest, this.#options.clock.now());
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) throw new BrokerError('CLOSED', 'the journal is closed');
  }
}

function digestOf(writes: readonly TopicWrite[], all: boolean): string {
  const values = writes.map(({ entries }) => entries.map((entry) => entry.value));
  return valuesDigest(all ? writes.map(({ topic }, at) => [topic, values[at]]) : values[0]);
}

/** Answers the UTF-16 units of all values. */
function checkSize(writes: readonly TopicWrite[]): number {
  let size = 0;
  for (const { entries } of writes) for (const { value } of entries) size += value.length;
  if (size <= MAX_COMMIT_BYTES) return size;
  throw new BrokerError(
    'ENTRY_TOO_LARGE',
    `a commit has ${size} characters, more than ${MAX_COMMIT_BYTES}`,
  );
}
