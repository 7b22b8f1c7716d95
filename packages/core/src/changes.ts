import { checkTopic } from './append-check.ts';
import type { AppendOptions, Broker, BrokerLog } from './broker.ts';
import {
  type Change,
  changeOf,
  checkMutation,
  encodeMutation,
  type Mutation,
  type RelationMutation,
  SILENT_ENTRY,
} from './change.ts';
import { type ChangeListener, ChangeListeners } from './change-listeners.ts';
import { ChangeOrder } from './change-order.ts';
import { SKIPPED } from './delivery.ts';
import { BrokerError } from './errors.ts';
import { type Logger, resolveObserver } from './observer.ts';
import { functionOption, refuseOption } from './option-check.ts';
import type { Position } from './position.ts';
import type { FeedEntry } from './slot.ts';

/** The options of {@link changes}. */
export interface ChangesOptions {
  /**
   * Answers the tags of an entity as the store has them now, or undefined where it has none or the entity is gone. Asked for
   * both ends of a relation, when its change is made, unless the mutation brings them.
   */
  readonly tagsOf?: (entityId: string) => readonly string[] | undefined;
}

/** The options of {@link localChanges}. */
export interface LocalChangesOptions extends ChangesOptions {
  /** Is told of listeners that throw. @default silence */
  readonly logger?: Logger;
}

/** The options of {@link Changes.append}. */
export interface ChangesAppendOptions extends Omit<AppendOptions, 'retention'> {
  /**
   * `'latest-only'` is for working state that is written again all the time, such as with each key that is pressed: the
   * commit is counted like any other, and nobody is told of it.
   * @default 'all'
   */
  readonly retention?: 'all' | 'latest-only';
}

/**
 * Makes the change feed of a store that announces its own writes: an ordered, durable log of what each of its commits did.
 * `Entities` and `Relations` map the types of the store to their metadata. Throws `TOPIC_INVALID`, `OPTION_INVALID`.
 */
export function changes<Entities = Record<string, unknown>, Relations = Record<string, unknown>>(
  broker: Broker,
  topic: string,
  options: ChangesOptions = {},
): Changes<Entities, Relations> {
  checkTopic(topic);
  checkOptions(options);
  return new Changes({ log: broker.log, topic }, broker.log.observer.logger, options);
}

/**
 * Makes a change feed of this process alone: no log, generations that count from 1, and no more than that count where
 * nobody listens. Throws `OPTION_INVALID`.
 */
export function localChanges<
  Entities = Record<string, unknown>,
  Relations = Record<string, unknown>,
>(options: LocalChangesOptions = {}): Changes<Entities, Relations> {
  checkOptions(options);
  return new Changes(undefined, resolveObserver(options).logger, options);
}

function checkOptions(options: ChangesOptions): void {
  if (typeof options !== 'object' || options === null)
    refuseOption('options', 'an object', options);
  functionOption('tagsOf', options.tagsOf);
}

/** Where changes are kept. */
interface ChangeLog {
  readonly log: BrokerLog;
  readonly topic: string;
}

/** The change feed of one store, made by {@link changes} or {@link localChanges}. It holds nothing open. */
export class Changes<Entities = Record<string, unknown>, Relations = Record<string, unknown>> {
  readonly #to: ChangeLog | undefined;
  readonly #tagsOf: ChangesOptions['tagsOf'];
  readonly #listeners: ChangeListeners<Entities, Relations>;
  readonly #order = new ChangeOrder();
  #generation = 0;
  #epoch = '';

  /**
   * Decodes the entries of the topic for a feed: `brokerFeed(broker, topic, { decode: store.changes.decode })`. What clients
   * get are the changes that listeners hear, field for field; commits that told nobody are skipped.
   */
  readonly decode: (text: string, entry: FeedEntry) => Change<Entities, Relations> = (_, entry) =>
    // Not a value: a feed takes it as "there is none", and passes nothing on.
    changeOf<Entities, Relations>(entry) ?? (SKIPPED as never);

  constructor(to: ChangeLog | undefined, logger: Logger, options: ChangesOptions) {
    this.#to = to;
    this.#tagsOf = options.tagsOf;
    this.#listeners = new ChangeListeners(logger);
  }

  /**
   * Appends what one commit of the store did, as one commit of the log, and resolves with its generation. Call it right
   * after the store has committed, without waiting for the one before: appends are written in the order of the calls, one
   * at a time. A commit that did nothing is counted, and told to nobody.
   *
   * A function is called at once or not at all: only if the log or a listener wants what it makes.
   *
   * Rejects as a log's `append` does. What was refused (`VALUE_INVALID`, `ENTRY_TOO_LARGE`) is not in the log: take it
   * back. After any other failure nobody knows, and the feed takes nothing more than a repeat under the same idempotency
   * key: without one, start anew from what the log holds.
   */
  async append(
    mutations:
      | readonly Mutation<Entities, Relations>[]
      | (() => readonly Mutation<Entities, Relations>[]),
    options: ChangesAppendOptions = {},
  ): Promise<number> {
    const { retention = 'all', ...appendOptions } = options;
    if (retention !== 'all' && retention !== 'latest-only')
      refuseOption('retention', "'all' or 'latest-only'", retention);
    const to = this.#to;
    const isWanted = retention === 'all' && (to !== undefined || this.#listeners.some);
    const texts = isWanted ? this.#encode(mutations) : [];
    if (to === undefined) {
      this.#generation += 1;
      this.#listeners.deliver(texts, this.#generation);
      return this.#generation;
    }
    const values = texts.length === 0 ? SILENT_ENTRY : texts;
    return this.#order.run(appendOptions.idempotencyKey, async () => {
      const position = await to.log.append(to.topic, values, appendOptions);
      // In the turn of this append: the next one may not be told of first.
      if (this.#isNews(position)) this.#listeners.deliver(texts, position.ordinal);
      return position.ordinal;
    });
  }

  /**
   * Calls `listener` with each change that is appended through this object, after its commit, in the order of the commits.
   * The change is shared by all listeners: treat it as frozen. A listener that throws, or whose promise rejects, is logged.
   * Returns what removes it.
   */
  onChange(listener: ChangeListener<Entities, Relations>): () => void {
    if (typeof listener !== 'function') refuseOption('listener', 'a function', listener);
    return this.#listeners.add(listener);
  }

  /**
   * Reads every change that the log retains, oldest first, up to its end at the moment; for a store that is made anew from its log.
   * Rejects as a log's `page` does, with `UNAVAILABLE` where the log is trimmed or replaced meanwhile, and with
   * `UNSUPPORTED` where there is no log.
   */
  async *replay(): AsyncGenerator<Change<Entities, Relations>, void, undefined> {
    const to = this.#to;
    if (to === undefined)
      throw new BrokerError('UNSUPPORTED', 'the change feed of a process has no log');
    for (let from: Position | 'earliest' = 'earliest', atTip = false; !atTip; ) {
      const page = await to.log.page(to.topic, from, PAGE_COMMITS);
      if (page.verdict !== 'ok') {
        throw new BrokerError(
          'UNAVAILABLE',
          `the changes were lost while they were read: ${page.verdict}`,
        );
      }
      for (const { position, entries } of page.commits) {
        for (const [index, entry] of entries.entries()) {
          if (entry.unreadable !== undefined) throw entry.unreadable;
          const change = changeOf<Entities, Relations>({
            value: entry.value,
            generation: position.ordinal,
            index,
          });
          if (change !== undefined) yield change;
        }
      }
      from = page.commits.at(-1)?.position ?? page.from;
      atTip = page.atTip;
    }
  }

  #encode(
    mutations:
      | readonly Mutation<Entities, Relations>[]
      | (() => readonly Mutation<Entities, Relations>[]),
  ): readonly string[] {
    const made = typeof mutations === 'function' ? mutations() : mutations;
    return made.map((mutation) => {
      checkMutation(mutation);
      return encodeMutation(mutation.kind === 'relation' ? this.#tagged(mutation) : mutation);
    });
  }

  #tagged({
    fromTags,
    toTags,
    ...mutation
  }: RelationMutation<Relations>): RelationMutation<Relations> {
    const { from, to } = mutation.relation;
    return {
      ...mutation,
      ...tags('fromTags', fromTags ?? this.#tagsOf?.(from)),
      ...tags('toTags', toTags ?? this.#tagsOf?.(to)),
    };
  }

  /** Tells whether a commit is one that was not told of yet: a repeat under an idempotency key answers with an old one. */
  #isNews({ epoch, ordinal }: Position): boolean {
    if (epoch === this.#epoch && ordinal <= this.#generation) return false;
    this.#epoch = epoch;
    this.#generation = ordinal;
    return true;
  }
}

/** Commits that a replay reads at a time. */
const PAGE_COMMITS = 1_000;

function tags(name: 'fromTags' | 'toTags', given: readonly string[] | undefined): object {
  return given === undefined || given.length === 0 ? {} : { [name]: given };
}
