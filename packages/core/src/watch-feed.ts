import { announcerOf } from './announce.ts';
import type { Broker } from './broker.ts';
import { systemClock } from './clock.ts';
import { FeedRefusal, toRefusal } from './feed-refusal.ts';
import { chain, isPromise, type MaybePromise } from './maybe-promise.ts';
import { functionOption, refuseOption } from './option-check.ts';
import { type EntryStage, RefusalTally } from './refusal-tally.ts';
import { describeIssue, isStandardSchema, type StandardSchema } from './standard-schema.ts';
import { watch } from './watch.ts';
import type { WatchEvent } from './watch-event.ts';
import { resolveWatchOptions, type WatchOptions } from './watch-options.ts';
import { LEFT_OUT, WatchReader } from './watch-reader.ts';

/** How events become values. `A` is what the caller hands to `map`, `T` the decoded value, `V` the delivered one. */
export interface WatchFeedOptions<A extends object = object, T = unknown, V = T>
  extends Omit<WatchOptions, 'signal'> {
  /**
   * Makes a value of an event's text. An event that does not decode is skipped, counted and logged.
   * @default 'json'
   */
  readonly decode?: 'json' | 'text' | ((text: string) => T);
  /** Checks and shapes the JSON value of an event (zod, valibot, arktype). Instead of `decode`. */
  readonly schema?: StandardSchema<unknown, T>;
  /** Makes of a value what one subscriber gets; `undefined` skips it. May be async. */
  readonly map?: (value: T, event: WatchEvent, args: A) => V | undefined | Promise<V | undefined>;
}

/** One subscriber's wish to watch a topic. */
export interface WatchRequest<A extends object> {
  readonly topic: unknown;
  readonly args: A;
  /** Ends the subscription. */
  readonly signal: AbortSignal;
}

/** Maps subscriptions onto watches, whatever carries them to the client: at most once, and without a place to resume. */
export class WatchFeed<A extends object = object> {
  readonly #broker: Broker;
  readonly #options: WatchFeedOptions<A>;
  readonly #decode: (text: string) => MaybePromise<unknown>;
  readonly #tallies = new Map<string, { readonly tally: RefusalTally; users: number }>();
  /** Events that were told of already: they are the same for all subscribers. */
  readonly #reported = new WeakSet<WatchEvent>();

  /**
   * Checks every option. Throws `OPTION_INVALID`; the sentence names the option. And `UNSUPPORTED` where a broker that
   * carries no announcements is to bring them alone: no subscription could ever get one.
   */
  constructor(broker: Broker, options: WatchFeedOptions<A> = {}) {
    if (typeof broker?.log?.follow !== 'function') refuseOption('broker', 'a broker', broker);
    if (resolveWatchOptions(options).only === 'announcements') announcerOf(broker);
    functionOption('map', options.map);
    this.#broker = broker;
    this.#options = options;
    this.#decode = decoder(options);
  }

  /** Starts a watch. Rejects with a {@link FeedRefusal}. Everything appended or announced after it resolved will come. */
  async open({ topic, args, signal }: WatchRequest<A>): Promise<WatchReader> {
    if (typeof topic !== 'string') throw new FeedRefusal('topic');
    try {
      const watching = await watch(this.#broker, topic, this.#options);
      const tally = this.#acquire(topic);
      const reader = new WatchReader(
        watching,
        (event) => this.#value(event, args, tally),
        () => {
          signal.removeEventListener('abort', close);
          this.#release(topic);
        },
      );
      const close = (): void => reader.close();
      signal.addEventListener('abort', close);
      if (signal.aborted) close();
      return reader;
    } catch (error) {
      throw toRefusal(error);
    }
  }

  #value(event: WatchEvent, args: A, tally: RefusalTally): MaybePromise<unknown> {
    const { map } = this.#options;
    const text = event.kind === 'entry' ? event.entry.value : event.value;
    const decoded = this.#stage('decode', event, tally, () => this.#decode(text));
    if (map === undefined) return decoded;
    return chain(decoded, (value) => {
      if (value === LEFT_OUT) return LEFT_OUT;
      const mapped = this.#stage('map', event, tally, () => map(value, event, args));
      return chain(mapped, (output) => (output === undefined ? LEFT_OUT : output));
    });
  }

  #stage(
    stage: EntryStage,
    event: WatchEvent,
    tally: RefusalTally,
    step: () => MaybePromise<unknown>,
  ): MaybePromise<unknown> {
    const failed = (error: unknown): typeof LEFT_OUT => {
      if (!this.#reported.has(event)) {
        this.#reported.add(event);
        // An announcement has no address.
        const { generation, index } = event.kind === 'entry' ? event.entry : NOWHERE;
        tally.add(stage, generation, index, error);
      }
      return LEFT_OUT;
    };
    try {
      const result = step();
      return isPromise(result) ? result.catch(failed) : result;
    } catch (error) {
      return failed(error);
    }
  }

  #acquire(topic: string): RefusalTally {
    let shared = this.#tallies.get(topic);
    if (shared === undefined) {
      const { clock = systemClock } = this.#options;
      shared = { tally: new RefusalTally(topic, this.#broker.log.observer, clock), users: 0 };
      this.#tallies.set(topic, shared);
    }
    shared.users += 1;
    return shared.tally;
  }

  #release(topic: string): void {
    const shared = this.#tallies.get(topic);
    if (shared === undefined) return;
    shared.users -= 1;
    if (shared.users > 0) return;
    shared.tally.summarise();
    this.#tallies.delete(topic);
  }
}

const NOWHERE = { generation: 0, index: 0 } as const;

function decoder(options: WatchFeedOptions<never>): (text: string) => MaybePromise<unknown> {
  const { decode = 'json', schema } = options;
  if (schema !== undefined) {
    if (!isStandardSchema(schema))
      refuseOption('schema', 'a Standard Schema such as a zod one', schema);
    if (options.decode !== undefined) refuseOption('decode', 'not given beside schema', decode);
    return (text) =>
      chain(schema['~standard'].validate(JSON.parse(text)), (result) => {
        if (result.issues === undefined) return result.value;
        throw new TypeError(`the schema refuses it${describeIssue(result.issues)}`);
      });
  }
  if (typeof decode === 'function') return decode;
  if (decode === 'text') return (text) => text;
  if (decode !== 'json') refuseOption('decode', "'json', 'text' or a function", decode);
  return (text) => JSON.parse(text);
}
