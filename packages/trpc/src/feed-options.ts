import type { FeedEntry, FeedGap, FeedOptions, StandardSchema } from '@brokerfeed/core';
import type { Decoded, FeedArgs } from './feed-types.ts';
import type { TopicParams } from './topic-option.ts';

/** The options that the engine takes as they are, and that look at nothing of tRPC's. */
type EngineOptions = Omit<
  FeedOptions,
  'decode' | 'schema' | 'prepare' | 'filter' | 'map' | 'onGap' | 'bind' | 'shareGap' | 'control'
>;

/**
 * The options of `brokerFeed`. TypeScript reads callbacks in their order: write `prepare` before `filter` and `map`.
 */
export interface BrokerFeedOptions<Context, Input, D, Schema, Prepared, Mapped, Snapshot, Control>
  extends EngineOptions {
  /**
   * Makes a value of an entry's text. Without `schema`, JSON is of an unknown type.
   *
   * @default 'json'
   */
  readonly decode?: D;

  /** Parses an entry's JSON by a Standard Schema (zod, valibot, arktype). Not together with `decode`. */
  readonly schema?: Schema;

  /**
   * Makes of a value what every subscriber gets, once per entry and process. May be async. The result is shared: treat it
   * as frozen.
   */
  readonly prepare?: (value: Decoded<D, Schema>, entry: FeedEntry) => Prepared;

  /** Tells whether this subscriber gets an entry. May be async. What it leaves out still moves the position on. */
  readonly filter?: (
    value: Awaited<Prepared>,
    args: FeedArgs<Context, Input> & { readonly entry: FeedEntry },
  ) => boolean | Promise<boolean>;

  /** Makes of a value what this subscriber gets; `undefined` skips the entry. May be async. */
  readonly map?: (
    value: Awaited<Prepared>,
    entry: FeedEntry,
    args: FeedArgs<Context, Input>,
  ) => Mapped;

  /**
   * Makes the snapshot for a client whose place in the log is lost (410) or whose id is bad (400), in place of that error:
   * one value, an iterable of values (an array is one), or nothing. Then the feed goes on live; the live read stands before this
   * runs, so nothing appended meanwhile is missed, and some of it may be in the snapshot too.
   */
  readonly onGap?: (args: FeedArgs<Context, Input> & { readonly gap: FeedGap }) => Snapshot;

  /** Names subscribers that may share one run of `onGap` under way, such as by tenant. */
  readonly shareGap?: (args: FeedArgs<Context, Input>) => string;

  /** Names the audience that tokens are bound to, such as a user. Costs a signature per subscriber and entry. */
  readonly bind?: (args: FeedArgs<Context, Input>) => string | Promise<string>;

  /**
   * Sends control frames: `{ feed: 'attached' }` once the subscription stands, so that a client that drops before its first
   * entry loses nothing; `catching-up`, `live` and `outage` when that is how it stands; and `position` with a fresher token
   * after `idleMs` in which nothing was delivered.
   *
   * @default false
   */
  readonly control?: Control;
}

/** The options of `brokerFeed` for a defined topic, which brings its own schema. */
export type TopicFeedOptions<Context, Input, Params, Value, Prepared, Mapped, Snapshot, Control> =
  TopicParams<Context, Input, Params> &
    Omit<
      BrokerFeedOptions<
        Context,
        Input,
        'json',
        StandardSchema<unknown, Value>,
        Prepared,
        Mapped,
        Snapshot,
        Control
      >,
      'decode' | 'schema'
    >;
