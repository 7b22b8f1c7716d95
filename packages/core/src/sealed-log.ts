import { checkAppend } from './append-check.ts';
import type {
  AppendOptions,
  Bounds,
  BrokerLog,
  Commit,
  Loss,
  Page,
  Sink,
  Start,
} from './broker.ts';
import { isBrokerError } from './errors.ts';
import type { Observer } from './observer.ts';
import type { Position } from './position.ts';
import type { KeySource, SealingKey } from './seal-keys.ts';
import type { SealOpener } from './seal-opener.ts';
import { openCommit, sealCommit } from './sealed-commit.ts';
import {
  type CheckedTopicAppend,
  type CommitLog,
  checkAppendAll,
  isCommitLog,
  type TopicAppend,
} from './topic-commit.ts';

/** What a sealed broker writes, and which earlier appends it knows again. */
export interface SealPolicy {
  readonly keys: KeySource;
  readonly seals: boolean;
  readonly acceptsPlaintext: boolean;
}

/** How an append is written: with a key, or as it is. */
type Form = SealingKey | 'plain';

/** A log whose store holds sealed values. */
export class SealedLog implements BrokerLog {
  readonly observer: Observer;
  /** Undefined where the log takes no commits across topics. */
  readonly appendAll?: CommitLog['appendAll'];
  readonly #log: BrokerLog;
  readonly #opener: SealOpener;
  readonly #policy: SealPolicy;
  readonly #underWay = new Set<Promise<unknown>>();

  constructor(log: BrokerLog, policy: SealPolicy, opener: SealOpener) {
    this.observer = log.observer;
    this.#log = log;
    this.#opener = opener;
    this.#policy = policy;
    if (isCommitLog(log)) {
      this.appendAll = (appends, once = {}) =>
        this.#appending(async (form) => {
          const parts = checkAppendAll(appends, once);
          return log.appendAll(
            parts.map((part) => written(part, form)),
            once,
          );
        });
    }
  }

  append(
    topic: string,
    value: string | readonly string[],
    options: AppendOptions = {},
  ): Promise<Position> {
    return this.#appending(async (form) => {
      const checked = checkAppend(topic, value, options);
      const { idempotencyKey } = checked;
      const { value: sealed, ...how } = written({ topic, ...checked }, form);
      const once = idempotencyKey === undefined ? {} : { idempotencyKey };
      return this.#log.append(topic, sealed, { ...how, ...once });
    });
  }

  async page(topic: string, from: Start, limit: number, signal?: AbortSignal): Promise<Page> {
    const page = await this.#log.page(topic, from, limit, signal);
    return page.verdict === 'ok' ? { ...page, commits: this.#opened(topic, page.commits) } : page;
  }

  async follow(
    topic: string,
    from: Position,
    sink: Sink,
    signal: AbortSignal,
  ): Promise<Loss | undefined> {
    const reading = new AbortController();
    const stop = (): void => reading.abort(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop);
    let failed: { readonly error: unknown } | undefined;
    /** Runs a step that takes keys. Without them the read breaks, and whoever reads starts again from where it stood. */
    const withKeys = (step: () => void): void => {
      if (failed !== undefined) return;
      try {
        step();
      } catch (error) {
        failed = { error };
        reading.abort();
      }
    };
    const opening: Sink = {
      live: () =>
        withKeys(() => {
          // One that could open nothing does not stand.
          this.#opener.ring(topic);
          sink.live();
        }),
      commits: (commits) => withKeys(() => sink.commits(this.#opened(topic, commits))),
    };
    try {
      const loss = await this.#log.follow(topic, from, opening, reading.signal);
      if (failed === undefined) return loss;
    } finally {
      signal.removeEventListener('abort', stop);
    }
    if (signal.aborted) return undefined;
    throw failed.error;
  }

  bounds(topic: string): Promise<Bounds> {
    return this.#log.bounds(topic);
  }

  /** Resolves when every append that was begun before has been resolved or rejected. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  #opened(topic: string, commits: readonly Commit[]): readonly Commit[] {
    if (commits.length === 0) return commits;
    const ring = this.#opener.ring(topic);
    return commits.map((commit) => openCommit(commit, topic, this.#opener, ring));
  }

  #appending<T>(appendAs: (form: Form) => Promise<T>): Promise<T> {
    const appending = this.#inFormsThatWereUsed(appendAs);
    this.#underWay.add(appending);
    const done = (): void => void this.#underWay.delete(appending);
    appending.then(done, done);
    return appending;
  }

  /** Appends in the form of this broker, or finds the append of the same key in one that it may have had before. */
  async #inFormsThatWereUsed<T>(appendAs: (form: Form) => Promise<T>): Promise<T> {
    const { keys, seals, acceptsPlaintext } = this.#policy;
    const form: Form = seals ? keys().first : 'plain';
    try {
      return await appendAs(form);
    } catch (error) {
      if (!isBrokerError(error, 'IDEMPOTENCY_CONFLICT')) throw error;
      // The first of these appends may have been made before the key was changed, or by an instance that does not seal
      // yet. A conflict has written nothing, so that one can ask after each.
      const forms: readonly Form[] = acceptsPlaintext ? [...keys().all, 'plain'] : keys().all;
      for (const earlier of forms) {
        if (earlier === form) continue;
        const found = await appendAs(earlier).catch(ignoreConflict);
        if (found !== undefined) return found;
      }
      throw error;
    }
  }
}

/** What is handed to the store in place of a part of an append. */
function written(append: CheckedTopicAppend, form: Form): TopicAppend {
  const { topic, entries, headers, idempotencyKey, retention } = append;
  const kept = retention === undefined ? {} : { retention };
  if (form === 'plain')
    return { topic, value: entries.map(({ value }) => value), headers, ...kept };
  const sealed = sealCommit(entries, headers, topic, form, idempotencyKey);
  return { topic, value: sealed.values, headers: sealed.headers, ...kept };
}

function ignoreConflict(error: unknown): undefined {
  if (!isBrokerError(error, 'IDEMPOTENCY_CONFLICT')) throw error;
}
