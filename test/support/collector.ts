import type { Unsubscribable } from '@trpc/server/observable';
import { Moments } from './moments.ts';

/** A tracked value as clients get it. */
export interface Frame {
  readonly id: string;
  readonly data?: unknown;
}

/** What a subscription told its client so far. */
export interface Seen {
  readonly frames: readonly Frame[];
  /** The data of these frames. */
  readonly values: readonly unknown[];
  readonly errors: readonly FeedClientError[];
  /** How often `onStarted` was called. */
  readonly started: number;
  readonly completed: boolean;
  /** Connection states in order: what `onConnectionStateChange` was told. */
  readonly states: readonly string[];
  /** The errors that came with those states: those that SSE retries are shown here alone. */
  readonly stateErrors: readonly FeedClientError[];
}

export interface FeedClientError {
  readonly message: string;
  readonly data?: {
    readonly code?: string;
    readonly httpStatus?: number;
    readonly feed?: { readonly status: number; readonly reason: string };
  };
}

/** The callbacks of a stock subscription, gathered. Ends with its scope. */
export interface Collector extends Seen, Disposable {
  /** Resolves once the condition holds for what was seen. Rejects after a while with what was seen instead. */
  until(condition: (seen: Seen) => boolean): Promise<void>;
  /** Waits for this many frames in all, and answers the data of all that came. */
  take(count: number): Promise<readonly unknown[]>;
  /** Waits until the subscription stands. */
  ready(): Promise<void>;
  /** Waits for the error that ended the subscription, and answers its `data`. */
  refusal(): Promise<FeedClientError['data']>;
  unsubscribe(): void;
}

interface Callbacks {
  onStarted(): void;
  onData(frame: Frame): void;
  // The client's error is generic in its router; a test looks at its message and data.
  onError(error: unknown): void;
  onComplete(): void;
  onConnectionStateChange(state: { state: string; error: unknown }): void;
}

/** Subscribes and gathers: `collect((on) => trpc.orders.subscribe(input, on))`. */
export function collect(subscribe: (on: Callbacks) => Unsubscribable): Collector {
  const frames: Frame[] = [];
  const values: unknown[] = [];
  const errors: FeedClientError[] = [];
  const states: string[] = [];
  const stateErrors: FeedClientError[] = [];
  const seen = { frames, values, errors, started: 0, completed: false, states, stateErrors };
  const moments = new Moments();
  const subscription = subscribe({
    onStarted() {
      seen.started += 1;
      moments.tell();
    },
    onData(frame) {
      frames.push(frame);
      values.push(frame.data);
      moments.tell();
    },
    onError(error) {
      errors.push(error as FeedClientError);
      moments.tell();
    },
    onComplete() {
      seen.completed = true;
      moments.tell();
    },
    onConnectionStateChange(state) {
      states.push(state.state);
      if (state.error) stateErrors.push(state.error as FeedClientError);
      moments.tell();
    },
  });
  const describe = (): string => {
    const summary = { ...seen, frames: frames.length, errors: errors.map(messageOf) };
    return `not seen; seen: ${JSON.stringify({ ...summary, stateErrors: stateErrors.map(messageOf) })}`;
  };
  const until = (condition: (seen: Seen) => boolean): Promise<void> =>
    moments.until(() => condition(seen), describe);
  return {
    frames,
    values,
    errors,
    states,
    stateErrors,
    get started() {
      return seen.started;
    },
    get completed() {
      return seen.completed;
    },
    until,
    async take(count) {
      await until(() => values.length >= count || errors.length > 0);
      if (values.length < count) throw new Error(`ended by: ${errors[0]?.message}`);
      return values;
    },
    ready: () => until(() => seen.started > 0),
    async refusal() {
      await until(() => errors.length > 0);
      return errors[0]?.data;
    },
    unsubscribe: () => subscription.unsubscribe(),
    [Symbol.dispose]: () => subscription.unsubscribe(),
  };
}

function messageOf(error: FeedClientError): string {
  return error.message;
}
