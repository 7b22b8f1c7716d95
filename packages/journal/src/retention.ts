import { join } from 'node:path';
import type { FileSystem } from './file-system.ts';
import { errorCode } from './file-system.ts';
import type { Layout } from './layout.ts';
import { segmentName } from './layout.ts';
import type { JournalRetention } from './options.ts';
import type { Segment } from './segment.ts';

/** Part of what is kept that one segment may hold, where retention counts entries or time. */
const SEGMENTS_PER_RETENTION = 4;
/** Segments hold at least so many entries: a file each for a handful would cost more than they free. */
const MIN_SEALED_ENTRIES = 256;

/** Decides which segments stay: answers the first sequence of the oldest of them. The newest stays always. */
export function firstRetained(
  segments: readonly Segment[],
  retention: Required<JournalRetention>,
  now: number,
): number {
  let bytes = 0;
  let entries = 0;
  for (const segment of segments) {
    bytes += segment.bytes;
    entries += segment.entries;
  }
  for (let at = 0; at < segments.length - 1; at += 1) {
    const segment = segments[at] as Segment;
    const goes =
      now - segment.lastAt > retention.maxAgeMs ||
      bytes > retention.maxBytes ||
      entries - segment.entries >= retention.maxEntries;
    if (!goes) return segment.first;
    bytes -= segment.bytes;
    entries -= segment.entries;
  }
  return segments.at(-1)?.first ?? 0;
}

/** Whether the active segment is sealed early, so that retention finds whole segments to drop. */
export function sealsEarly(
  segment: Segment,
  { maxAgeMs, maxEntries }: Required<JournalRetention>,
  now: number,
): boolean {
  return (
    segment.entries >= Math.max(MIN_SEALED_ENTRIES, maxEntries / SEGMENTS_PER_RETENTION) ||
    now - segment.firstAt >= maxAgeMs / SEGMENTS_PER_RETENTION
  );
}

/** Deletes the file of a segment, or moves it to the archive. Repeatable: a crash may have done half of it. */
export function discardSegment(
  fs: FileSystem,
  layout: Layout,
  archiveDir: string | undefined,
  first: number,
): void {
  const file = layout.segment(first);
  if (archiveDir !== undefined) archive(fs, file, archiveDir, segmentName(first));
  fs.unlink(file);
  fs.syncDir(layout.segments);
}

function archive(fs: FileSystem, file: string, archiveDir: string, name: string): void {
  fs.makeDir(archiveDir);
  const archived = join(archiveDir, name);
  try {
    fs.rename(file, archived);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return;
    if (errorCode(error) !== 'EXDEV') throw error;
    const temporary = `${archived}.tmp`;
    fs.copy(file, temporary);
    const copied = fs.openForRepair(temporary);
    try {
      copied.dataSyncNow();
    } finally {
      copied.close();
    }
    fs.rename(temporary, archived);
  }
  fs.syncDir(archiveDir);
}
