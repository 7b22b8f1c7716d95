import { BrokerError, type Logger } from '@brokerfeed/core';
import type { Caches } from './caches.ts';
import type { Checkpoint } from './checkpoint.ts';
import { damaged } from './damage.ts';
import type { FileSystem } from './file-system.ts';
import { readIdentity, writeIdentity } from './identity.ts';
import { JournalState } from './journal-state.ts';
import { type Layout, parseSegmentName } from './layout.ts';
import { parkTail, proveTail } from './repair.ts';
import { Segment } from './segment.ts';
import { SegmentIndex } from './segment-index.ts';
import { checkUnproven, type ScanEnd, scanHeader, scanSegment } from './segment-scan.ts';

/** What opening needs to know. */
export interface RecoveryContext {
  readonly fs: FileSystem;
  readonly layout: Layout;
  readonly caches: Caches;
  readonly logger: Logger;
  readonly keys: { readonly windowMs: number; readonly maxKeys: number };
  /** The number of this opening. */
  readonly boot: number;
  readonly now: number;
  /** Removes or archives the file of a segment that retention is done with. */
  readonly discard: (first: number) => void;
}

/** Log that was read on opening, above which a checkpoint is written at once: a process that keeps crashing must not rescan. */
const RECHECKPOINT_BYTES = 64 * 1024;

/** Brings the folder into order and answers what it holds. Throws `DAMAGED`, having changed nothing. */
export function recover(context: RecoveryContext): JournalState {
  const { fs, layout, caches, logger } = context;
  const firsts = fs.list(layout.segments).flatMap((name) => parseSegmentName(name) ?? []);
  const journal = readIdentity(fs, layout) ?? renew(context, firsts);
  const checkpoint = caches.loadCheckpoint(journal, context.keys, (found) =>
    fits(found, context, firsts),
  );
  if (checkpoint === undefined && firsts.length > 0) {
    logger.warn({ dir: layout.dir, segments: firsts.length }, 'journal.rebuild');
  }
  const state = checkpoint?.state ?? new JournalState(journal, context.keys);
  const scanned = scanFrom(state, checkpoint, firsts, context);
  dropMissing(state, firsts, context);
  removeLeftovers(state, firsts, context);
  const rebuilt = checkpoint === undefined && state.segments.length > 0;
  if (rebuilt || scanned >= RECHECKPOINT_BYTES) {
    const newest = state.segments.at(-1);
    if (newest?.index !== undefined) caches.saveIndex(newest, newest.index);
    caches.saveCheckpoint(state, context.now);
  }
  return state;
}

/** Names a journal that has no name: a new one, or one that lost the file. */
function renew({ fs, layout, logger }: RecoveryContext, firsts: readonly number[]): string {
  for (const first of firsts) {
    const path = layout.segment(first);
    const header = scanHeader(fs.readFile(path) ?? Buffer.alloc(0), path)?.header;
    if (header === undefined) continue;
    logger.warn({ file: layout.identity }, 'journal.identity.rebuilt');
    return writeIdentity(fs, layout, header.journal);
  }
  return writeIdentity(fs, layout);
}

/** Whether a checkpoint stands on the segments that are there. One that knows more than there is tells of damage. */
function fits(
  checkpoint: Checkpoint,
  { fs, layout }: RecoveryContext,
  firsts: readonly number[],
): boolean {
  const { state, segment: at, offset } = checkpoint;
  const newest = firsts.at(-1) ?? 0;
  if (newest < at) {
    throw damaged(layout.segment(at), 0, 'the segment is missing, and a checkpoint knows it');
  }
  if (!firsts.includes(at)) return false;
  for (const segment of state.segments) {
    if (!firsts.includes(segment.first)) continue;
    const path = layout.segment(segment.first);
    const size = fs.stat(path)?.size ?? 0;
    if (size < (segment.first === at ? offset : segment.bytes)) {
      throw damaged(
        path,
        size,
        `the file ends, and a checkpoint knows ${segment.bytes} bytes of it`,
      );
    }
  }
  return true;
}

/** Applies everything after the checkpoint. Answers how many bytes that were. */
function scanFrom(
  state: JournalState,
  checkpoint: Checkpoint | undefined,
  firsts: readonly number[],
  context: RecoveryContext,
): number {
  let scanned = 0;
  for (const first of firsts) {
    if (checkpoint !== undefined && first < checkpoint.segment) continue;
    const resumed = first === checkpoint?.segment;
    const newest = first === firsts.at(-1);
    if (!resumed) checkPlace(state, first, context);
    scanned += scanOne(state, first, resumed ? checkpoint.offset : 0, newest, context);
  }
  return scanned;
}

/** A segment must begin with the next sequence; the oldest one may begin anywhere. */
function checkPlace(state: JournalState, first: number, { layout }: RecoveryContext): void {
  if (state.segments.length === 0 && state.next === 1) state.next = first;
  else if (first !== state.next) {
    throw damaged(
      layout.segment(first),
      0,
      `sequences ${state.next} to ${first - 1} are missing before this segment`,
    );
  }
}

function scanOne(
  state: JournalState,
  first: number,
  offset: number,
  newest: boolean,
  context: RecoveryContext,
): number {
  const { fs, layout, caches } = context;
  const file = layout.segment(first);
  const bytes = readFrom(fs, file, offset);
  const from =
    offset > 0 ? { segment: state.segments.at(-1), end: 0 } : begin(state, bytes, file, context);
  if (from?.segment === undefined) {
    // Not even a header: the segment was being born. Only the newest can be.
    if (!newest) throw damaged(file, 0, 'the header is not whole');
    checkUnproven(state, bytes, file);
    parkTail(context, first, 0, bytes);
    return bytes.length;
  }
  const { segment } = from;
  segment.index = offset > 0 ? caches.loadIndex(segment, offset) : new SegmentIndex();
  const end = scanSegment(state, segment, bytes.subarray(from.end), offset + from.end, file);
  if (segment.index !== undefined) segment.index.covered = end.wholeBytes;
  if (newest && segment.last < segment.first) {
    // A header and no record: its name is that of the next record, which will be born anew.
    state.segments.pop();
    parkTail(context, first, 0, bytes);
  } else if (newest) repair(first, bytes, offset, end, context);
  else {
    if (end.wholeBytes < offset + bytes.length) {
      throw damaged(file, end.wholeBytes, 'the line is not whole, in a sealed segment');
    }
    if (segment.index !== undefined) caches.saveIndex(segment, segment.index);
    segment.index = undefined;
  }
  return bytes.length;
}

/** Reads a segment's header, and counts it among the segments. */
function begin(
  state: JournalState,
  bytes: Buffer,
  file: string,
  { layout }: RecoveryContext,
): { segment: Segment; end: number } | undefined {
  const found = scanHeader(bytes, file);
  if (found === undefined) return undefined;
  const { header, end } = found;
  if (header.journal !== state.journal) {
    throw damaged(
      file,
      0,
      `the segment belongs to journal ${header.journal}, not ${state.journal}`,
    );
  }
  if (layout.segment(header.first) !== file) {
    throw damaged(file, 0, `the header says that the segment begins with ${header.first}`);
  }
  const segment = new Segment(header.first, header.boot);
  segment.bytes = end;
  segment.firstAt = header.at;
  segment.lastAt = header.at;
  state.segments.push(segment);
  // Only the oldest segment tells something new: all else was told by the drops before.
  state.salt = header.salt;
  return { segment, end };
}

/** Parks what is torn, and makes the rest of the newest segment durable. */
function repair(
  first: number,
  bytes: Buffer,
  offset: number,
  end: ScanEnd,
  context: RecoveryContext,
): void {
  const whole = end.wholeBytes - offset;
  if (whole < bytes.length) parkTail(context, first, end.wholeBytes, bytes.subarray(whole));
  const unproven = end.starts[Math.max(0, end.durable + 1 - end.from)];
  if (unproven !== undefined) {
    proveTail(context, first, unproven, bytes.subarray(unproven - offset, whole));
  }
}

/** Counts segments as removed that are known and not there. Only the oldest may be. */
function dropMissing(
  state: JournalState,
  firsts: readonly number[],
  { layout, logger }: RecoveryContext,
): void {
  const missing = state.segments.filter((segment) => !firsts.includes(segment.first));
  const newestMissing = missing.at(-1);
  if (newestMissing === undefined) return;
  const kept = state.segments.find((segment) => firsts.includes(segment.first));
  if (kept === undefined || kept.first < newestMissing.first) {
    throw damaged(layout.segment(newestMissing.first), 0, 'the segment is missing');
  }
  logger.warn({ dir: layout.dir, before: kept.first }, 'journal.segments.removed-by-hand');
  state.retire(kept.first);
}

/** Removes the files of segments that were retired before the process ended. */
function removeLeftovers(
  state: JournalState,
  firsts: readonly number[],
  { discard }: RecoveryContext,
): void {
  const oldest = state.segments[0]?.first ?? state.next;
  for (const first of firsts) if (first < oldest) discard(first);
}

function readFrom(fs: FileSystem, file: string, offset: number): Buffer {
  const size = fs.stat(file)?.size ?? 0;
  const bytes = Buffer.allocUnsafe(Math.max(0, size - offset));
  const reader = fs.openForReading(file);
  try {
    for (let at = 0; at < bytes.length; ) {
      const count = reader.readNow(bytes.subarray(at), offset + at);
      if (count === 0) throw new BrokerError('UNAVAILABLE', `${file} shrank while it was read`);
      at += count;
    }
  } finally {
    reader.close();
  }
  return bytes;
}
