import type { ResolvedFeedOptions } from './feed-options.ts';
import { FeedRefusal } from './feed-refusal.ts';
import { chain, Eventual, isPromise, type MaybePromise } from './maybe-promise.ts';
import type { Observer } from './observer.ts';
import type { FrameEncoder } from './push-target.ts';
import { type EntryStage, RefusalTally } from './refusal-tally.ts';
import type { EntrySlot } from './slot.ts';
import { describeIssue, type SchemaResult } from './standard-schema.ts';

/** The answer for an entry that this subscriber does not get. */
export const SKIPPED: unique symbol = Symbol('skipped');

/** What one feed keeps on an entry for all its subscribers. */
class EntryMemo {
  value: Eventual<unknown> | undefined;
  reported = false;
}

/**
 * Turns entries of one topic into the values of one feed. Decoding is done for each subscriber, so that none can change
 * what another gets; `prepare` is the step that is shared.
 */
export class Delivery<A extends object> {
  readonly #options: ResolvedFeedOptions<A>;
  readonly #tally: RefusalTally;
  readonly #encodings = new WeakMap<object, object>();
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

  /** Whether what a subscriber gets of an entry is the same for all, where it gets it. */
  get isShared(): boolean {
    return this.#options.map === undefined;
  }

  /** Whether every subscriber gets every entry. */
  get isWhole(): boolean {
    return this.isShared && this.#options.filter === undefined;
  }

  /** Makes the value of an entry for one subscriber, its own. Throws a refusal where entries that fail end the feed. */
  value(slot: EntrySlot, args: A): MaybePromise<unknown> {
    const { prepare, map } = this.#options;
    const value = chain(
      prepare === undefined ? this.#decoded(slot) : this.sharedValue(slot),
      (input) => this.#filtered(slot, input, args),
    );
    if (map === undefined) return value;
    return chain(value, (input) => {
      if (input === SKIPPED) return SKIPPED;
      const mapped = this.#stage('map', slot, () => map(input, slot, args));
      return chain(mapped, (output) => (output === undefined ? SKIPPED : output));
    });
  }

  /** Makes the value that all subscribers of {@link isShared} get, once. */
  sharedValue(slot: EntrySlot): MaybePromise<unknown> {
    const memo = this.#memo(slot);
    memo.value ??= new Eventual(
      chain(this.#decoded(slot), (decoded) => {
        const { prepare } = this.#options;
        if (decoded === SKIPPED || prepare === undefined) return decoded;
        return this.#stage('prepare', slot, () => prepare(decoded, slot));
      }),
    );
    return memo.value.get();
  }

  /**
   * Makes the value for whoever keeps what it makes of it. The value itself is kept only where others may ask for it: an
   * object less for each entry of a page.
   */
  valueOnce(slot: EntrySlot): MaybePromise<unknown> {
    const { prepare, filter } = this.#options;
    return prepare === undefined && filter === undefined
      ? this.#decoded(slot)
      : this.sharedValue(slot);
  }

  /** Decides whether one subscriber gets the shared value. A filter that changes the value it is given changes nothing sent. */
  passes(slot: EntrySlot, args: A): MaybePromise<boolean> {
    if (this.#options.filter === undefined) return true;
    const kept = chain(this.sharedValue(slot), (input) => this.#filtered(slot, input, args));
    return chain(kept, (input) => input !== SKIPPED);
  }

  /**
   * Answers under what the frames of this feed are kept that an encoder makes. The encoder alone will not do: other feeds
   * of the topic, with values and tokens of their own, use it too.
   */
  encodingBy(encoder: object): object {
    let encoding = this.#encodings.get(encoder);
    if (encoding === undefined) {
      encoding = {};
      this.#encodings.set(encoder, encoding);
    }
    return encoding;
  }

  /** Makes the frame of a value; one that cannot be written fails like any other step. */
  frame(
    slot: EntrySlot,
    value: unknown,
    token: string,
    encoder: FrameEncoder,
  ): string | typeof SKIPPED {
    try {
      return encoder.encode(token, value, this.#options.isVerbatim ? slot.value : undefined);
    } catch (error) {
      return this.#failed('encode', slot, error);
    }
  }

  #filtered(slot: EntrySlot, input: unknown, args: A): MaybePromise<unknown> {
    const { filter } = this.#options;
    if (filter === undefined || input === SKIPPED) return input;
    const kept = this.#stage('filter', slot, () => filter(input, { ...args, entry: slot }));
    return chain(kept, (keep) => (keep === true ? input : SKIPPED));
  }

  #decoded(slot: EntrySlot): MaybePromise<unknown> {
    if (slot.unreadable !== undefined) return this.#leftOut(slot.unreadable);
    return this.#stage('decode', slot, () => this.#decode(slot));
  }

  /** Leaves out what nobody can read. It was counted and logged where that was found. */
  #leftOut(error: Error): typeof SKIPPED {
    if (this.#options.onEntryError === 'end') throw new FeedRefusal('entry', { cause: error });
    return SKIPPED;
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
  throw new TypeError(`the schema refuses it${describeIssue(result.issues)}`);
}
