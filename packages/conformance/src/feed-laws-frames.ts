import type { FeedFrame, FrameEncoder } from '@brokerfeed/core';
import type { FeedControl } from '@brokerfeed/core/wire';
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
  /** Whether it came with what may be told between a gap and its snapshot: that cannot be seen from outside. */
  readonly mayBeInside: boolean;
}

/** What a connection was told of how it stands: at first, and then what changed. */
export class Standings {
  #last: FeedControl['feed'] | undefined;
  #standing: FeedControl['feed'] | undefined;

  get isLive(): boolean {
    return this.#standing === 'live';
  }

  /** Checks that the next frame says what it may say there. */
  see(frame: FeedControl['feed'] | 'value'): void {
    const isFirst = this.#last === undefined;
    if (frame === 'value' || frame === 'position') {
      if (this.#standing === undefined)
        throw new Error(`got a ${frame} before it was told how it stands`);
      return;
    }
    if (isFirst ? frame === 'live' : frame === 'attached' || frame === this.#standing)
      throw new Error(`told '${frame}' after '${this.#last}'`);
    this.#last = frame;
    if (frame !== 'attached') this.#standing = frame;
  }
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

/** One for all feeds, as a transport has it: what it makes for one of them must not reach clients of another. */
export const JSON_ENCODER: FrameEncoder = {
  encode: (token, value) => JSON.stringify({ token, value }),
};

/** Reads what the encoder wrote. */
export function decodeFrame(text: string): FeedFrame {
  return JSON.parse(text) as FeedFrame;
}
