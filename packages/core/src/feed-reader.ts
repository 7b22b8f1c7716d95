import { FeedPump } from './feed-pump.ts';
import { toRefusal } from './feed-refusal.ts';
import { type Carrier, type FeedFrame, type FeedSession, IDLE } from './feed-session.ts';
import { isPromise } from './maybe-promise.ts';
import type { PushTarget } from './push-target.ts';
import { scheduler, type Turn } from './scheduler.ts';
import type { Wakeable } from './subscriber.ts';

/** Hands the frames of one subscription to a transport, which pulls them or has them pushed. */
export interface FeedReader {
  /**
   * Resolves with the next frame, or undefined once the subscription was closed. Rejects with a `FeedRefusal` when it
   * cannot go on, or with what a callback threw; it is closed then. Calls that overlap are answered in order.
   */
  next(): Promise<FeedFrame | undefined>;
  /**
   * Pushes all frames to a connection instead, until the subscription is closed; then resolves. Rejects as `next` does.
   * Goes on where `next` has stopped, and is the end of asking it.
   */
  push(target: PushTarget): Promise<void>;
  /** Leaves the topic and settles a pending `next` with undefined. Idempotent. */
  close(): void;
}

/** Resolves a promise: with a frame, with undefined at the end, or with a rejection. */
type Settle = (outcome: FeedFrame | undefined | Promise<never>) => void;

/** A reader of a session. It is told when to go on, so that one which waits holds a promise and no more. */
export class SessionReader<A extends object> implements FeedReader, Carrier, Wakeable, Turn {
  readonly #session: FeedSession<A>;
  /** Whether it may go on, waits for the tail, has its turn coming, or waits for a callback, the log or a pump. */
  #state: 'free' | 'idle' | 'queued' | 'busy' = 'free';
  /** The promise that is settled next. */
  #asked: Settle | undefined;
  /** Those of calls that came before that was settled. */
  #askedThen: Settle[] | undefined;
  #pump: FeedPump<A> | undefined;

  constructor(session: FeedSession<A>) {
    this.#session = session;
    session.carrier = this;
    session.subscriber.reader = this;
  }

  next(): Promise<FeedFrame | undefined> {
    return new Promise((resolve) => {
      this.#ask(resolve);
      if (this.#state === 'free') this.#advance();
    });
  }

  push(target: PushTarget): Promise<void> {
    return new Promise<void>((resolve) => {
      // Settled as `next` is, but never with a frame.
      this.#ask(resolve as Settle);
      this.#state = 'busy';
      // Closed already: a pump that was started now would never be told to stop.
      if (this.#session.closing.closed) return this.closed();
      this.#pump = new FeedPump(this.#session, target, this);
      this.#pump.start();
    });
  }

  close(): void {
    this.#session.close();
  }

  /** Ends the feed for a reason, which whoever asked first is told. */
  fail(error: unknown): void {
    const settle = this.#takeAsked();
    this.close();
    settle?.(Promise.reject(toRefusal(error)));
  }

  closed(): void {
    this.#pump?.stop();
    this.#state = 'free';
    for (let settle = this.#takeAsked(); settle; settle = this.#takeAsked()) settle(undefined);
  }

  woken(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'queued';
    scheduler.add(this);
  }

  turn(): void {
    this.#state = 'free';
    this.#advance();
  }

  /** Answers whoever has asked, as far as that is possible at once. */
  #advance(): void {
    const session = this.#session;
    try {
      while (this.#asked !== undefined) {
        const next = session.closing.closed ? undefined : session.next();
        if (isPromise(next)) {
          this.#wait(next);
          return;
        }
        if (next === IDLE) {
          this.#state = 'idle';
          return;
        }
        if (session.closing.closed) this.closed();
        else this.#answer(next);
      }
    } catch (error) {
      this.fail(error);
    }
  }

  #wait(next: Promise<FeedFrame | undefined | typeof IDLE>): void {
    this.#state = 'busy';
    next
      .then((frame) => {
        this.#state = 'free';
        if (frame !== IDLE) this.#answer(frame);
        this.#advance();
      })
      .catch((error) => this.fail(error));
  }

  #answer(frame: FeedFrame | undefined): void {
    const settle = frame && this.#takeAsked();
    if (frame === undefined || settle === undefined) return;
    this.#session.delivered(frame.token);
    settle(frame);
  }

  #ask(settle: Settle): void {
    if (this.#asked === undefined) this.#asked = settle;
    else {
      this.#askedThen ??= [];
      this.#askedThen.push(settle);
    }
  }

  #takeAsked(): Settle | undefined {
    const settle = this.#asked;
    this.#asked = this.#askedThen?.shift();
    return settle;
  }
}
