import { BrokerError, EPOCH_PATTERN, newEpoch } from '@brokerfeed/core';
import type { FileSystem } from './file-system.ts';
import type { Layout } from './layout.ts';
import { FORMAT } from './record.ts';

/** Reads the journal's name, or undefined where the file is missing or not whole. */
export function readIdentity(fs: FileSystem, layout: Layout): string | undefined {
  const bytes = fs.readFile(layout.identity);
  if (bytes === undefined) return undefined;
  let identity: { journal?: unknown; format?: unknown };
  try {
    identity = JSON.parse(bytes.toString('utf8')) as typeof identity;
  } catch {
    return undefined;
  }
  if (identity.format !== undefined && identity.format !== FORMAT) {
    throw new BrokerError(
      'UNSUPPORTED',
      `${layout.identity}: format ${String(identity.format)}; this version reads ${FORMAT}`,
    );
  }
  const { journal } = identity;
  return typeof journal === 'string' && EPOCH_PATTERN.test(journal) ? journal : undefined;
}

/** Names the journal, durably. */
export function writeIdentity(
  fs: FileSystem,
  layout: Layout,
  journal: string = newEpoch(),
): string {
  const temporary = `${layout.identity}.tmp`;
  fs.writeFile(temporary, Buffer.from(`${JSON.stringify({ journal, format: FORMAT })}\n`), 'sync');
  fs.rename(temporary, layout.identity);
  fs.syncDir(layout.dir);
  return journal;
}
