import type { Entry, Headers, Position, Retention } from '@brokerfeed/core';
import type { ControlRecord } from './record.ts';

/** What one append writes to one topic, checked. */
export interface TopicWrite {
  readonly topic: string;
  readonly entries: readonly Entry[];
  readonly headers: Headers;
  readonly retention: Retention | undefined;
}

/** What an append wrote. */
export interface Appended {
  readonly sequence: number;
  /** The position after the commit in each topic, in the order of the writes. */
  readonly positions: readonly Position[];
}

/** An append that waits for its turn. */
export interface AppendJob {
  readonly kind: 'append';
  readonly writes: readonly TopicWrite[];
  /** The UTF-16 units of all values. */
  readonly size: number;
  readonly key: string | undefined;
  readonly all: boolean;
  resolve(appended: Appended): void;
  reject(error: unknown): void;
}

type WithoutPlace<T> = T extends unknown ? Omit<T, 'seq' | 'at' | 'durable'> : never;

/** What a control record says, without its place. */
export type Control = WithoutPlace<ControlRecord>;

/** A change of the log itself: decided in its turn, when everything before it is visible. Always synced. */
export interface ControlJob {
  readonly kind: 'control';
  decide(): readonly Control[];
  resolve(): void;
  reject(error: unknown): void;
}

export type Job = AppendJob | ControlJob;
