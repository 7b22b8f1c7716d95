import { type Clock, systemClock } from './clock.ts';
import { functionOption, integerOption, refuseOption } from './option-check.ts';
import { RETRY_DELAYS_MS } from './retry.ts';
import type { FeedEntry } from './slot.ts';
import { isStandardSchema, type StandardSchema } from './standard-schema.ts';
import type { FeedReason, FeedStatus } from './wire/reason.ts';

/** Why a snapshot is asked for. */
export interface FeedGap {
  readonly reason: FeedReason;
  readonly status: FeedStatus;
  /** The token that could not be resumed from: as the peer sent it, or that of the last entry taken. */
  readonly lastEventId: string | undefined;
}

/** What a snapshot may be: nothing, one value, or a series. An array is a series; a string is one value. */
// biome-ignore lint/suspicious/noConfusingVoidType: an `onGap` that only acts, and returns nothing, is fine
export type Snapshot<S> = S | Iterable<S> | AsyncIterable<S> | undefined | void;

/**
 * How a feed turns entries into values. `A` is what the caller hands to every callback (over tRPC `{ ctx, input }`), `T`
 * the decoded value, `P` the prepared one, `V` the delivered one, `S` a snapshot's.
 */
export interface FeedOptions<A extends object = object, T = unknown, P = T, V = P, S = unknown> {
  /**
   * Where a subscriber without a token starts: at new entries, or at the oldest retained.
   * @default 'latest'
   */
  readonly from?: 'latest' | 'earliest';
  /**
   * Turns an entry's text into a value, for each subscriber its own. An entry that does not decode is skipped.
   * @default 'json'
   */
  readonly decode?: 'json' | 'text' | ((text: string, entry: FeedEntry) => T);
  /** Checks and shapes the JSON value of an entry (zod, valibot, arktype). Instead of `decode`. */
  readonly schema?: StandardSchema<unknown, T>;
  /** Turns the decoded value into another, once per entry and process: all subscribers share what it returns. May be async. */
  readonly prepare?: (value: T, entry: FeedEntry) => P | Promise<P>;
  /** Decides for one subscriber whether an entry is delivered. May be async. */
  readonly filter?: (
    value: P,
    args: A & { readonly entry: FeedEntry },
  ) => boolean | Promise<boolean>;
  /** Turns the value into what one subscriber gets; `undefined` skips the entry. May be async. */
  readonly map?: (value: P, entry: FeedEntry, args: A) => V | undefined | Promise<V | undefined>;
  /**
   * Makes a snapshot where the token cannot be resumed from; what was appended since it was asked for follows it. Without
   * it, such a feed ends with 400 or 410.
   */
  readonly onGap?: (args: A & { readonly gap: FeedGap }) => Snapshot<S> | Promise<Snapshot<S>>;
  /** Names subscribers that may share one run of `onGap` under way, such as by tenant. */
  readonly shareGap?: (args: A) => string;
  /** Signs tokens; of a list, the first signs and all verify. At least 16 bytes each. Without it a peer may choose any position. */
  readonly secret?: string | readonly string[];
  /** Names the audience to which tokens are bound, such as a user. Costs a signature per subscriber and entry. */
  readonly bind?: (args: A) => string | Promise<string>;
  /**
   * Longest token accepted, in characters.
   * @default 512
   */
  readonly maxIdLength?: number;
  /**
   * Entries that the topic's ring keeps in memory, for all subscribers together.
   * @default 1024
   */
  readonly highWaterMark?: number;
  /**
   * How long the live read of a topic outlives its last subscriber, in milliseconds.
   * @default 5000
   */
  readonly lingerMs?: number;
  /**
   * Sends control frames: the position at the start, a fresher one after `idleMs` (default 30000) in which entries were
   * skipped, and whether the subscription is catching up, live, or waits for the end of an outage.
   * @default false
   */
  readonly control?: boolean | { readonly idleMs?: number };
  /**
   * What an entry does that cannot be decoded, prepared, filtered or mapped: it is skipped, logged and counted, or ends
   * the feed with 422.
   * @default 'skip'
   */
  readonly onEntryError?: 'skip' | 'end';
  /**
   * Waits between tries to read a log that does not answer, in milliseconds; after the last the feed ends with 503.
   * @default [250, 1000, 4000, 10000, 16000]
   */
  readonly retryDelaysMs?: readonly number[];
  /** @default the system's */
  readonly clock?: Clock;
}

/** Options checked, with every default filled in. */
export interface ResolvedFeedOptions<A extends object> {
  readonly from: 'latest' | 'earliest';
  readonly decode: (text: string, entry: FeedEntry) => unknown;
  /** Whether what is delivered of an entry is what its text says as JSON. */
  readonly isVerbatim: boolean;
  readonly schema: StandardSchema | undefined;
  readonly prepare: FeedOptions<A>['prepare'];
  readonly filter: FeedOptions<A>['filter'];
  readonly map: FeedOptions<A>['map'];
  readonly onGap: FeedOptions<A>['onGap'];
  readonly shareGap: FeedOptions<A>['shareGap'];
  readonly bind: FeedOptions<A>['bind'];
  readonly secrets: readonly unknown[] | undefined;
  readonly maxIdLength: number;
  readonly highWaterMark: number;
  readonly lingerMs: number;
  /** Undefined where no control frames are sent. */
  readonly controlIdleMs: number | undefined;
  readonly tellsStanding: boolean;
  readonly onEntryError: 'skip' | 'end';
  readonly retryDelaysMs: readonly number[];
  readonly clock: Clock;
}

const FUNCTIONS = ['prepare', 'filter', 'map', 'onGap', 'shareGap', 'bind'] as const;
const MAX_DELAY_MS = 2 ** 31 - 1;

/** Checks the options of a feed. Throws `OPTION_INVALID`; the sentence names the option. */
export function resolveFeedOptions<A extends object>(
  options: FeedOptions<A>,
): ResolvedFeedOptions<A> {
  if (typeof options !== 'object' || options === null)
    refuseOption('options', 'an object', options);
  for (const name of FUNCTIONS) functionOption(name, options[name]);
  if (options.shareGap !== undefined && options.onGap === undefined) {
    refuseOption('shareGap', 'only of use beside onGap', options.shareGap);
  }
  const controlIdleMs = resolveControl(options.control);
  return {
    from: oneOf('from', options.from, ['latest', 'earliest']),
    decode: resolveDecode(options),
    isVerbatim: isVerbatim(options),
    schema: options.schema,
    prepare: options.prepare,
    filter: options.filter,
    map: options.map,
    onGap: options.onGap,
    shareGap: options.shareGap,
    bind: options.bind,
    secrets: resolveSecrets(options),
    maxIdLength: integerOption('maxIdLength', options.maxIdLength, 512, 1),
    highWaterMark: integerOption('highWaterMark', options.highWaterMark, 1024, 1),
    lingerMs: integerOption('lingerMs', options.lingerMs, 5_000, 0, MAX_DELAY_MS),
    controlIdleMs,
    tellsStanding: controlIdleMs !== undefined,
    onEntryError: oneOf('onEntryError', options.onEntryError, ['skip', 'end']),
    retryDelaysMs: resolveDelays(options.retryDelaysMs),
    clock: options.clock ?? systemClock,
  };
}

function oneOf<T extends string>(
  name: string,
  value: T | undefined,
  allowed: readonly [T, ...T[]],
): T {
  if (value === undefined) return allowed[0];
  if (!allowed.includes(value))
    refuseOption(name, allowed.map((word) => `'${word}'`).join(' or '), value);
  return value;
}

function resolveDecode(options: FeedOptions<never>): (text: string, entry: FeedEntry) => unknown {
  const { decode, schema } = options;
  if (schema !== undefined) {
    if (!isStandardSchema(schema))
      refuseOption('schema', 'a Standard Schema such as a zod one', schema);
    if (decode !== undefined) refuseOption('decode', 'not given beside schema', decode);
  }
  if (typeof decode === 'function') return decode;
  return oneOf('decode', decode, ['json', 'text']) === 'json'
    ? (text) => JSON.parse(text)
    : (text) => text;
}

function isVerbatim({ decode = 'json', schema, prepare, map }: FeedOptions<never>): boolean {
  return decode === 'json' && schema === undefined && prepare === undefined && map === undefined;
}

function resolveSecrets(options: FeedOptions<never>): readonly unknown[] | undefined {
  // Given but undefined is a forgotten environment variable: it must not mean "unsigned".
  if (!('secret' in options)) return undefined;
  const secrets: readonly unknown[] = Array.isArray(options.secret)
    ? options.secret
    : [options.secret];
  if (secrets.length === 0) refuseOption('secret', 'at least one text', options.secret);
  return secrets;
}

function resolveControl(control: FeedOptions['control']): number | undefined {
  if (control === undefined || control === false) return undefined;
  if (control === true) return 30_000;
  if (typeof control !== 'object' || control === null)
    refuseOption('control', 'a boolean or { idleMs }', control);
  return integerOption('control.idleMs', control.idleMs, 30_000, 1, MAX_DELAY_MS);
}

function resolveDelays(delays: readonly number[] | undefined): readonly number[] {
  if (delays === undefined) return RETRY_DELAYS_MS;
  if (!Array.isArray(delays)) refuseOption('retryDelaysMs', 'an array of milliseconds', delays);
  for (const ms of delays) integerOption('retryDelaysMs', ms, 0, 0, MAX_DELAY_MS);
  return delays;
}
