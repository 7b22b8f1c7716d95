import type { Clock } from './clock.ts';
import { type Position, samePosition } from './position.ts';
import type { FeedControl } from './wire/control.ts';
import { parseToken } from './wire/token.ts';

type News = FeedControl['feed'];

/** What the control frames of one subscription are to tell, and whether the token that its client holds has grown old. */
export class FeedControls {
  readonly #clock: Clock;
  readonly #idleMs: number;
  #queue: News[] = [];
  #lastToken = '';
  #lastFrameAt = 0;
  #cancelIdle: (() => void) | undefined;

  /** `idleMs` without a frame are a time after which a client's token may be refreshed. */
  constructor(clock: Clock, idleMs: number) {
    this.#clock = clock;
    this.#idleMs = idleMs;
  }

  get pending(): boolean {
    return this.#queue.length > 0;
  }

  take(): News | undefined {
    return this.#queue.shift();
  }

  /** Starts with this news: what the tail went through before a subscription stood is not its business. */
  start(...news: News[]): void {
    this.#queue = news;
  }

  /** Queues the news, or takes back the opposite that nobody has read yet: a log that comes and goes queues one frame. */
  noteOutage(state: 'outage' | 'live'): void {
    const last = this.#queue.at(-1);
    if (last === 'outage' || last === 'live') this.#queue.pop();
    else this.#queue.push(state);
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
      const at = isQuiet && !this.pending ? cursor() : undefined;
      if (at !== undefined && this.#isBehind(at)) {
        this.#queue.push('position');
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
