import { type CheckedAppend, checkAppend, MAX_COMMIT_ENTRIES } from './append-check.ts';
import type { Broker, BrokerLog, Retention } from './broker.ts';
import { describe } from './describe.ts';
import { BrokerError } from './errors.ts';
import type { Position } from './position.ts';

/** One topic's part of a commit that spans topics. */
export interface TopicAppend {
  readonly topic: string;
  readonly value: string | readonly string[];
  /** Given to every entry of this part. */
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * What this part leaves of its topic.
   * @default the broker's own
   */
  readonly retention?: Retention;
}

/** What a commit across topics wrote. */
export interface AppendedAll {
  /** The position after each part, in the order of the list. */
  readonly positions: readonly Position[];
}

/** A log whose topics are kept in one place, so that they can be appended to together. */
export interface CommitLog extends BrokerLog {
  /**
   * Appends one commit to each topic, all or nothing: whoever reads one of them can read the others. A topic may be named
   * once. An idempotency key is one for the whole, apart from those of single topics. Rejects as `append` does.
   */
  appendAll(
    appends: readonly TopicAppend[],
    options?: { readonly idempotencyKey?: string },
  ): Promise<AppendedAll>;
}

/** A broker whose log takes commits across topics. */
export interface CommitBroker extends Broker {
  readonly log: CommitLog;
}

/** Tells whether a log takes commits across topics. */
export function isCommitLog(log: BrokerLog): log is CommitLog {
  return typeof (log as Partial<CommitLog>).appendAll === 'function';
}

/** A part, checked. */
export interface CheckedTopicAppend extends CheckedAppend {
  readonly topic: string;
}

/** Checks the arguments of `appendAll` for every broker alike. Throws a `BrokerError`; nothing has been written then. */
export function checkAppendAll(
  appends: readonly TopicAppend[],
  options: { readonly idempotencyKey?: string } = {},
  maxEntryBytes?: number,
): readonly CheckedTopicAppend[] {
  if (!Array.isArray(appends))
    throw new BrokerError('VALUE_INVALID', `a commit is a list of parts, not ${describe(appends)}`);
  const { idempotencyKey } = options;
  const keyed = idempotencyKey === undefined ? {} : { idempotencyKey };
  const parts = appends.map(({ topic, value, headers, retention }: TopicAppend) => {
    const bag = headers === undefined ? {} : { headers };
    const kept = retention === undefined ? {} : { retention };
    return { topic, ...checkAppend(topic, value, { ...keyed, ...bag, ...kept }, maxEntryBytes) };
  });
  if (new Set(parts.map(({ topic }) => topic)).size !== parts.length)
    throw new BrokerError('VALUE_INVALID', 'a commit names each of its topics once');
  const count = parts.reduce((sum, { entries }) => sum + entries.length, 0);
  if (count === 0 || count > MAX_COMMIT_ENTRIES) {
    throw new BrokerError(
      'VALUE_INVALID',
      `a commit has 1 to ${MAX_COMMIT_ENTRIES} entries, not ${count}`,
    );
  }
  return parts;
}
