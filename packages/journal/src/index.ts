export {
  type JournalAppendedAll,
  type JournalBroker,
  type JournalLog,
  journalBroker,
} from './journal-broker.ts';
export type { FsyncPolicy, JournalOptions, JournalRetention } from './options.ts';
export { type Finding, type VerifyReport, verify } from './verify.ts';
