import type { Logger } from '@brokerfeed/core';
import type { FileSystem } from './file-system.ts';
import type { Layout } from './layout.ts';

interface RepairContext {
  readonly fs: FileSystem;
  readonly layout: Layout;
  readonly logger: Logger;
  readonly boot: number;
}

/** Copies the torn end of a segment to the quarantine, durably, and only then cuts it off. */
export function parkTail(
  { fs, layout, logger, boot }: RepairContext,
  first: number,
  offset: number,
  bytes: Buffer,
): void {
  const file = layout.segment(first);
  if (bytes.length > 0) {
    const parked = layout.torn(first, offset, boot);
    fs.makeDir(layout.quarantine);
    fs.writeFile(parked, bytes, 'sync');
    fs.syncDir(layout.quarantine);
    fs.syncDir(layout.dir);
    logger.warn({ file, offset, bytes: bytes.length, parked }, 'journal.torn-tail');
  }
  if (offset === 0) {
    fs.unlink(file);
    fs.syncDir(layout.segments);
    return;
  }
  const repair = fs.openForRepair(file);
  try {
    repair.truncate(offset);
    repair.dataSyncNow();
  } finally {
    repair.close();
  }
}

/**
 * Writes the same bytes again and syncs them. After a failed fdatasync the kernel may hold pages that are marked clean and are not on
 * the disk: they are read, and lost with the power. Written again, they are dirty, and the sync means what it says.
 */
export function proveTail(
  { fs, layout }: RepairContext,
  first: number,
  offset: number,
  bytes: Buffer,
): void {
  const repair = fs.openForRepair(layout.segment(first));
  try {
    if (bytes.length > 0) repair.writeAt(bytes, offset);
    repair.dataSyncNow();
  } finally {
    repair.close();
  }
  fs.syncDir(layout.segments);
}
