import { resolve } from 'node:path';
import {
  type Clock,
  integerOption,
  type Logger,
  type Meter,
  type Observer,
  refuseOption,
  resolveObserver,
  systemClock,
} from '@brokerfeed/core';

/** What an acknowledged append has survived: see FORMAT.md, "Durability". */
export type FsyncPolicy = 'commit' | 'interval' | 'never';

/**
 * What is kept of all topics together. Segments go whole, oldest first; the active one stays. What an append asks for its
 * own topic comes beside it.
 */
export interface JournalRetention {
  /**
   * The age of a segment's newest commit, in milliseconds.
   * @default unlimited
   */
  readonly maxAgeMs?: number;
  /**
   * The most bytes of all segments.
   * @default unlimited
   */
  readonly maxBytes?: number;
  /**
   * Entries of all topics together: at least so many of the newest stay.
   * @default unlimited
   */
  readonly maxEntries?: number;
}

/** The options of `journalBroker`. */
export interface JournalOptions {
  /** The folder, on a local file system. Made where it does not exist. One process at a time. */
  readonly dir: string;
  /**
   * When appended bytes are forced to the disk, and with it when an append resolves and readers see it.
   * @default 'commit'
   */
  readonly fsync?: FsyncPolicy;
  /**
   * How much an acknowledged append may be ahead of the disk under `fsync: 'interval'`, in milliseconds.
   * @default 100
   */
  readonly fsyncIntervalMs?: number;
  /** @default everything is kept */
  readonly retention?: JournalRetention;
  /**
   * Where segments go that retention is done with.
   * @default they are deleted
   */
  readonly archiveDir?: string;
  /**
   * The size at which a segment is sealed, in bytes.
   * @default 10_485_760 // 10 MiB
   */
  readonly segmentBytes?: number;
  /**
   * The largest entry, in UTF-8 bytes of its value.
   * @default 262_144 // 256 KiB
   */
  readonly maxEntryBytes?: number;
  /**
   * How long an idempotency key is remembered, in milliseconds.
   * @default 86_400_000 // 24 hours
   */
  readonly idempotencyWindowMs?: number;
  /**
   * The most idempotency keys that are remembered; the oldest are forgotten first.
   * @default 100_000
   */
  readonly maxIdempotencyKeys?: number;
  /** @default silence */
  readonly logger?: Logger;
  /** @default counts nothing */
  readonly meter?: Meter;
  /** @default the system's */
  readonly clock?: Clock;
}

/** Options with every default filled in. */
export interface ResolvedJournalOptions {
  readonly dir: string;
  readonly fsync: FsyncPolicy;
  readonly fsyncIntervalMs: number;
  readonly retention: Required<JournalRetention>;
  readonly archiveDir: string | undefined;
  readonly segmentBytes: number;
  readonly maxEntryBytes: number;
  readonly keys: { readonly windowMs: number; readonly maxKeys: number };
  readonly observer: Observer;
  readonly clock: Clock;
}

const KIB = 1024;
const MIB = 1024 * KIB;
const DEFAULT_FSYNC_INTERVAL_MS = 100;
const DEFAULT_SEGMENT_BYTES = 10 * MIB;
const MIN_SEGMENT_BYTES = 4 * KIB;
/** With the longest record behind it, still below what four bytes of an index can say. */
const MAX_SEGMENT_BYTES = 2048 * MIB;
const DEFAULT_MAX_ENTRY_BYTES = 256 * KIB;
const MAX_ENTRY_BYTES = 64 * MIB;
const DEFAULT_IDEMPOTENCY_WINDOW_MS = 24 * 60 * 60 * 1000;
const DEFAULT_MAX_IDEMPOTENCY_KEYS = 100_000;
/** A segment is at most this part of what retention keeps: whole segments go, so fewer would keep too much or too little. */
const SEGMENTS_PER_RETENTION = 4;
const UNLIMITED = Number.POSITIVE_INFINITY;

/** Checks the options and fills in what was left out. */
export function resolveJournalOptions(options: JournalOptions): ResolvedJournalOptions {
  const { dir, fsync = 'commit', retention = {}, archiveDir } = options;
  if (typeof dir !== 'string' || dir === '') refuseOption('dir', 'the path of a folder', dir);
  if (archiveDir !== undefined && (typeof archiveDir !== 'string' || archiveDir === '')) {
    refuseOption('archiveDir', 'the path of a folder', archiveDir);
  }
  if (fsync !== 'commit' && fsync !== 'interval' && fsync !== 'never') {
    refuseOption('fsync', "'commit', 'interval' or 'never'", fsync);
  }
  if (typeof retention !== 'object' || retention === null) {
    refuseOption('retention', 'an object', retention);
  }
  const maxBytes = integerOption('retention.maxBytes', retention.maxBytes, UNLIMITED, 1);
  const segmentBytes = integerOption(
    'segmentBytes',
    options.segmentBytes,
    DEFAULT_SEGMENT_BYTES,
    MIN_SEGMENT_BYTES,
    MAX_SEGMENT_BYTES,
  );
  return {
    dir: resolve(dir),
    fsync,
    fsyncIntervalMs: integerOption(
      'fsyncIntervalMs',
      options.fsyncIntervalMs,
      DEFAULT_FSYNC_INTERVAL_MS,
      1,
    ),
    retention: {
      maxBytes,
      maxAgeMs: integerOption('retention.maxAgeMs', retention.maxAgeMs, UNLIMITED, 1),
      maxEntries: integerOption('retention.maxEntries', retention.maxEntries, UNLIMITED, 1),
    },
    archiveDir: archiveDir === undefined ? undefined : resolve(archiveDir),
    segmentBytes: Math.max(
      MIN_SEGMENT_BYTES,
      Math.min(segmentBytes, Math.floor(maxBytes / SEGMENTS_PER_RETENTION)),
    ),
    maxEntryBytes: integerOption(
      'maxEntryBytes',
      options.maxEntryBytes,
      DEFAULT_MAX_ENTRY_BYTES,
      1,
      MAX_ENTRY_BYTES,
    ),
    keys: {
      windowMs: integerOption(
        'idempotencyWindowMs',
        options.idempotencyWindowMs,
        DEFAULT_IDEMPOTENCY_WINDOW_MS,
        1,
      ),
      maxKeys: integerOption(
        'maxIdempotencyKeys',
        options.maxIdempotencyKeys,
        DEFAULT_MAX_IDEMPOTENCY_KEYS,
        1,
      ),
    },
    observer: resolveObserver(options),
    clock: options.clock ?? systemClock,
  };
}
