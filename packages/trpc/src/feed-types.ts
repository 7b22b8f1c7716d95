import type { FeedEntry, StandardSchema } from '@brokerfeed/core';
import type { FeedControl } from '@brokerfeed/core/wire';
import type { TrackedEnvelope } from '@trpc/server';

/** What tRPC calls a resolver with: the part of it that a feed reads. */
export interface FeedResolverOptions<Context, Input> {
  readonly ctx: Context;
  readonly input: Input;
  /** Aborts when the client unsubscribes or is gone. */
  readonly signal: AbortSignal | undefined;
  readonly path: string;
}

/** An input that can carry a resume token: an object or none. Into a string or an array tRPC cannot put one. */
export type FeedInput = (object & { readonly [Symbol.iterator]?: never }) | undefined;

/** The subscription that a callback works for. */
export interface FeedArgs<Context, Input> {
  readonly ctx: Context;
  readonly input: Input;
}

/** How the text of an entry becomes a value. */
export type Decode = 'json' | 'text' | ((text: string, entry: FeedEntry) => unknown);

/** The value that `schema`, or else `decode`, makes of an entry. */
export type Decoded<D, Schema> =
  Schema extends StandardSchema<infer _Input, infer Output>
    ? Output
    : D extends 'text'
      ? string
      : D extends (text: string, entry: FeedEntry) => infer Result
        ? Awaited<Result>
        : unknown;

/** A value without the user's own `tracked()`, which the feed takes off. */
export type Bare<Value> = Value extends TrackedEnvelope<infer Data> ? Data : Value;

/**
 * A type that is not inferred from what is expected of the result. A validator given to `.output()` would otherwise decide what a
 * feed without `map` sends, and refuse nothing. (Not `NoInfer`: it stays on the type, and hides its union from tRPC's own types.)
 */
export type Uninferred<Type> = [Type][Type extends unknown ? 0 : never];

/** The values that clients get for what `map` answers: `undefined` skips. */
export type MappedValue<Result> = Bare<Exclude<Awaited<Result>, void>>;

/** The values that clients get for what `onGap` answers: the items of an iterable, the one value, or none. */
export type SnapshotValue<Result> = SnapshotOf<Awaited<Result>>;

type SnapshotOf<Result> = Result extends void
  ? never
  : Result extends TrackedEnvelope<infer Data>
    ? Data
    : Result extends string
      ? Result
      : Result extends AsyncIterable<infer Item> | Iterable<infer Item>
        ? Bare<Item>
        : Result;

/** The control frames that a feed with this `control` option sends. */
export type ControlValue<Control> = Control extends false | undefined ? never : FeedControl;
