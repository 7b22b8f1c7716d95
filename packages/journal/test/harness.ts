import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrokerHarness } from '@brokerfeed/conformance';
import { Journal } from '../src/journal.ts';
import { brokerOn, type JournalBroker } from '../src/journal-broker.ts';
import { type JournalOptions, resolveJournalOptions } from '../src/options.ts';

/** A folder that is removed when the test is done with it. */
export interface TemporaryFolder extends Disposable {
  readonly path: string;
}

export function temporaryFolder(): TemporaryFolder {
  const path = mkdtempSync(join(tmpdir(), 'brokerfeed-journal-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** One open folder under any number of brokers, as the laws want it. */
export async function journalHarness(
  options: Omit<JournalOptions, 'dir'> = {},
): Promise<BrokerHarness> {
  const folder = temporaryFolder();
  const resolved = resolveJournalOptions({ dir: folder.path, ...options });
  const journal = new Journal(resolved);
  const instance = (): JournalBroker => brokerOn(journal, resolved, async () => {});
  const broker = instance();
  return {
    broker,
    peer: async () => instance(),
    trim: (topic, keepCommits) => journal.trim(topic, keepCommits),
    drop: (topic) => journal.drop(topic),
    async [Symbol.asyncDispose]() {
      await broker.close();
      await journal.close();
      folder[Symbol.dispose]();
    },
  };
}
