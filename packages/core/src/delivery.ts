import type { ResolvedFeedOptions } from './feed-options.ts';
import { FeedRefusal } from './feed-refusal.ts';
import { chain, isPromise, type MaybePromise } from './maybe-promise.ts';
import type { Observer } from './observer.ts';
import { type EntryStage, RefusalTally } from './refusal-tally.ts';
import type { EntrySlot } from './slot.ts';
import type { SchemaResult } from './standard-schema.ts';

/** The answer for an entry that this subscriber does not get. */
export const SKIPPED: unique symbol = Symbol('skipped');

/** What one feed keeps on an entry for all its subscribers. */
class EntryMemo {
  prepared: MaybePromise<unknown> | undefined;
  reported = false;
}

/**
 * Turns entries of one topic into the values of one feed. Decoding is done for each subscriber, so that none can change
 * what another gets; `prepare` is the step that is shared.
 */
export class Delivery<A extends object> {
  readonly #options: ResolvedFeedOptions<A>;
  readonly #tally: RefusalTally;
  #users = 0;

  constructor(topic: string, options: ResolvedFeedOptions<A>, observer: Observer) {
    this.#options = options;
    this.#tally = new RefusalTally(topic, observer, options.clock);
  }

  acquire(): void {
    this.#users += 1;
  }

  /** Answers whether this was the last user. */
  release(): boolean {
    this.#users -= 1;
    if (this.#users === 0) this.#tally.summarise();
    return this.#users === 0;
  }

  /** Makes the value of an entry for one subscriber. Throws a refusal where entries that fail end the feed. */
  value(slot: EntrySlot, args: A): MaybePromise<unknown> {
    const { prepare, filter, map } = this.#options;
    let value =
      prepare === undefined
        ? this.#stage('decode', slot, () => this.#decode(slot))
        : this.#prepared(slot);
    if (filter !== undefined) {
      value = chain(value, (input) => {
        if (input === SKIPPED) return SKIPPED;
        const kept = this.#stage('filter', slot, () => filter(input, { ...args, entry: slot }));
        return chain(kept, (keep) => (keep === true ? input : SKIPPED));
      });
    }
    if (map !== undefined) {
      value = chain(value, (input) => {
        if (input === SKIPPED) return SKIPPED;
        const mapped = this.#stage('map', slot, () => map(input, slot, args));
        return chain(mapped, (output) => (output === undefined ? SKIPPED : output));
      });
    }
    return value;
  }

  #prepared(slot: EntrySlot): MaybePromise<unknown> {
    const memo = this.#memo(slot);
    memo.prepared ??= chain(
      this.#stage('decode', slot, () => this.#decode(slot)),
      (decoded) =>
        decoded === SKIPPED
          ? SKIPPED
          : this.#stage('prepare', slot, () => this.#options.prepare?.(decoded, slot)),
    );
    return memo.prepared;
  }

  #decode(slot: EntrySlot): MaybePromise<unknown> {
    const decoded = this.#options.decode(slot.value, slot);
    const { schema } = this.#options;
    return schema === undefined
      ? decoded
      : chain(schema['~standard'].validate(decoded), acceptedValue);
  }

  #memo(slot: EntrySlot): EntryMemo {
    return slot.memo(this, () => new EntryMemo());
  }

  /** Runs a step of the way. One that throws is reported, once per entry, and skips it or ends the feed. */
  #stage(
    stage: EntryStage,
    slot: EntrySlot,
    step: () => MaybePromise<unknown>,
  ): MaybePromise<unknown> {
    try {
      const result = step();
      return isPromise(result) ? result.catch((error) => this.#failed(stage, slot, error)) : result;
    } catch (error) {
      return this.#failed(stage, slot, error);
    }
  }

  #failed(stage: EntryStage, slot: EntrySlot, error: unknown): typeof SKIPPED {
    const memo = this.#memo(slot);
    if (!memo.reported) {
      memo.reported = true;
      this.#tally.add(stage, slot.generation, slot.index, error);
    }
    if (this.#options.onEntryError === 'end') throw new FeedRefusal('entry', { cause: error });
    return SKIPPED;
  }
}

function acceptedValue(result: SchemaResult<unknown>): unknown {
  if (result.issues === undefined) return result.value;
  const [issue] = result.issues;
  const path = issue?.path
    ?.map((part) => String((part as { key?: unknown })?.key ?? part))
    .join('.');
  throw new TypeError(`the schema refuses it${path ? ` at ${path}` : ''}: ${issue?.message}`);
}
