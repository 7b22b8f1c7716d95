import type { FeedFrame, FrameEncoder } from '@brokerfeed/core';
import type { Address } from './feed-laws-model.ts';

/** What the next entry of a connection may be. */
export type Expected =
  /** This one. */
  | { readonly kind: 'entry'; readonly at: Address }
  /** The first of a commit, of this one or an earlier: whatever comes after that place must not be missed. */
  | { readonly kind: 'before'; readonly incarnation: number; readonly commit: number }
  /** The first of the oldest commit that was retained at some time since `commit` was. */
  | {
      readonly kind: 'oldest';
      readonly incarnation: number;
      readonly commit: number;
      readonly until: number;
    }
  /** None before a snapshot was asked for. */
  | { readonly kind: 'snapshot' };

/** A token that a client holds, and what resuming with it must bring. */
export interface Held {
  readonly token: string;
  readonly expected: Expected;
  /** Whether it came with news of an outage, which may fall between a gap and its snapshot: it cannot be seen from outside. */
  readonly mayBeInside: boolean;
}

export interface Part {
  readonly part: number;
  readonly of: number;
}

/** An entry as a law feed delivers it: what the test wrote, where the feed says it is, and which feed made it. */
export interface Named extends Address {
  readonly generation: number;
  readonly place: number;
  readonly by: string;
}

const ENCODER = new TextEncoder();
const DECODER = new TextDecoder();

/** One for all feeds, as a transport has it: what it makes for one of them must not reach clients of another. */
export const JSON_ENCODER: FrameEncoder = {
  encode: (token, value) => ENCODER.encode(JSON.stringify({ token, value })),
};

/** Reads what the encoder wrote. */
export function decodeFrame(bytes: Uint8Array): FeedFrame {
  return JSON.parse(DECODER.decode(bytes)) as FeedFrame;
}
