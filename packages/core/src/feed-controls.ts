import type { Clock } from './clock.ts';
import { type Position, samePosition } from './position.ts';
import type { FeedControl, FeedStanding } from './wire/control.ts';
import { parseToken } from './wire/token.ts';

/** Numbers of control frames begin below this: two bytes of a token. */
const FIRST_NUMBERS = 2 ** 14;

/** Those of the values of a snapshot, of which there may be many, begin below this: four bytes. */
const FIRST_VALUES = 2 ** 28;

/** What the control frames of one subscription are to tell, and whether the token that its client holds has grown old. */
export class FeedControls {
  readonly #clock: Clock;
  readonly #idleMs: number;
  /** What is to be told once. */
  #notice: 'attached' | 'position' | undefined;
  #told: FeedStanding | undefined;
  #number = 0;
  #lastToken = '';
  #lastFrameAt = 0;
  #cancelIdle: (() => void) | undefined;

  /** `idleMs` without a frame are a time after which a client's token may be refreshed. */
  constructor(clock: Clock, idleMs: number) {
    this.#clock = clock;
    this.#idleMs = idleMs;
  }

  /** The standing that was told last. */
  get told(): FeedStanding | undefined {
    return this.#told;
  }

  /** Begins a subscription that was asked for with this token. It `stands` unless there is a gap. */
  start(token: string | undefined, stands: boolean): void {
    this.#number = firstNumber(token, FIRST_NUMBERS);
    if (stands) this.#notice = 'attached';
  }

  /** Whether there is something to tell one who stands so now. What came and went before anybody looked is not told. */
  pending(standing: FeedStanding | undefined): boolean {
    return this.#notice !== undefined || standing !== this.#told;
  }

  /** Takes what comes next of that. */
  take(standing: FeedStanding | undefined): FeedControl['feed'] | undefined {
    const notice = this.#notice;
    if (notice !== undefined) {
      this.#notice = undefined;
      return notice;
    }
    const news = standing === this.#told ? undefined : standing;
    this.#told = standing;
    return news;
  }

  /**
   * Numbers a control frame, for its token. tRPC's client reads from two connections while it moves from one to the other,
   * and drops from the second what has a token that came on the first: so are entries known, but how it stands on the
   * second must not be dropped.
   */
  number(): number {
    this.#number += 1;
    return this.#number;
  }

  /** Notes that a frame left, and with which token. */
  delivered(token: string): void {
    this.#lastToken = token;
    this.#lastFrameAt = this.#clock.now();
  }

  /**
   * Refreshes the client's token while entries pass that it does not get. `cursor` answers undefined while something else
   * is about to be delivered; `onNews` is called when there is a frame to send.
   */
  watchIdle(cursor: () => Position | undefined, onNews: () => void): void {
    this.#cancelIdle = this.#clock.after(this.#idleMs, () => {
      const isQuiet = this.#clock.now() - this.#lastFrameAt >= this.#idleMs;
      const at = isQuiet ? cursor() : undefined;
      if (at !== undefined && this.#isBehind(at)) {
        this.#notice = 'position';
        onNews();
      }
      this.watchIdle(cursor, onNews);
    });
  }

  close(): void {
    this.#cancelIdle?.();
  }

  #isBehind(cursor: Position): boolean {
    const held = parseToken(this.#lastToken);
    return held === undefined || !samePosition(held.fields, cursor);
  }
}

/**
 * Answers the number of the first value of a snapshot that is made for whoever came with this token. A client that moves
 * inside a snapshot has it made again on the second connection: of a value that came on the first, it would drop the one
 * there that has the same token.
 */
export function firstValueNumber(token: string | undefined): number {
  return firstNumber(token, FIRST_VALUES);
}

/** Two connections of one client were asked for with different tokens. Nothing random: tokens are to be reproducible. */
function firstNumber(token = '', below: number): number {
  let number = 0;
  for (const char of token.slice(-8)) number = (number * 31 + char.charCodeAt(0)) % below;
  return number;
}
