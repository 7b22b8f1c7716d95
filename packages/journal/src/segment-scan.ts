import { BrokerError, isBrokerError } from '@brokerfeed/core';
import { damaged } from './damage.ts';
import type { JournalState } from './journal-state.ts';
import { scanLines } from './line.ts';
import { parseHeader, parseRecord, type SegmentHeader } from './record.ts';
import type { Segment } from './segment.ts';

/** Where a scan of a segment stopped. */
export interface ScanEnd {
  /** The bytes that are whole lines. */
  readonly wholeBytes: number;
  /** The newest sequence that a record says to be durable. */
  readonly durable: number;
  /** Where each record starts that was scanned, from sequence `from` on. */
  readonly starts: readonly number[];
  readonly from: number;
}

/** Reads the header of a segment, or answers undefined where its first line is not whole. */
export function scanHeader(
  bytes: Buffer,
  file: string,
): { header: SegmentHeader; end: number } | undefined {
  let found: { header: SegmentHeader; end: number } | undefined;
  scanLines(bytes, (text, _, end) => {
    if (text === undefined) return false;
    const header = parseHeader(text);
    if (header === undefined) throw damaged(file, 0, 'the first line is not a header');
    found = { header, end };
    return false;
  });
  return found;
}

/**
 * Applies the records of a segment from `offset` on, and stops at the first line that is not whole. `bytes` begins at
 * `offset`. Throws `DAMAGED` where a whole line does not follow what came before, or proves that the broken one was
 * durable. `onRecord` is called after each record, with the sequence of the next one.
 */
export function scanSegment(
  state: JournalState,
  segment: Segment,
  bytes: Buffer,
  offset: number,
  file: string,
  onRecord: (next: number) => void = () => {},
): ScanEnd {
  let wholeBytes = offset;
  let durable = 0;
  let broken = false;
  const starts: number[] = [];
  const from = state.next;
  scanLines(bytes, (text, start, end) => {
    if (text === undefined) broken = true;
    else if (!broken) {
      durable = Math.max(durable, applyLine(state, segment, text, offset + start, file));
      starts.push(offset + start);
      wholeBytes = offset + end;
      segment.bytes = wholeBytes;
      onRecord(state.next);
    } else if (provesDurable(text, state.next)) {
      throw damaged(
        file,
        wholeBytes,
        `the line is not whole, and the record at byte ${offset + start} says that it was durable`,
      );
    }
    return true;
  });
  return { wholeBytes, durable, starts, from };
}

/** Checks a segment whose header is not whole: throws where a record in it proves that it was. */
export function checkUnproven(state: JournalState, bytes: Buffer, file: string): void {
  scanLines(bytes, (text, start) => {
    if (text !== undefined && provesDurable(text, state.next)) {
      throw damaged(file, 0, `the header is not whole, and the record at byte ${start} follows it`);
    }
    return true;
  });
}

function applyLine(
  state: JournalState,
  segment: Segment,
  text: string,
  offset: number,
  file: string,
): number {
  try {
    const record = parseRecord(text);
    state.apply(record, segment, offset);
    return record.durable ?? 0;
  } catch (error) {
    if (isBrokerError(error, 'UNSUPPORTED')) {
      throw new BrokerError('UNSUPPORTED', `${file} at byte ${offset}: ${error.message}`);
    }
    throw damaged(file, offset, (error as Error).message, error);
  }
}

/** Whether a whole line after a broken one says that the record of a sequence had been synced before it was written. */
function provesDurable(text: string, sequence: number): boolean {
  const record = parseRecord(text);
  return (record.durable ?? 0) >= sequence;
}
