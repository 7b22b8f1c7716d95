import type { Observable, Observer, Unsubscribable } from '@trpc/server/observable';
import type { FeedClock } from './clock.ts';
import { isShown, onPage } from './page.ts';

/** What a subscription goes through: one subscription of the links behind after another, and the waits between. */
export class Attempts {
  readonly #clock: FeedClock;
  /** Counts subscriptions and waits. What an earlier one still says is not listened to. */
  #turn = 0;
  #leave: () => void = nothing;

  constructor(clock: FeedClock) {
    this.#clock = clock;
  }

  /** Leaves what goes on now. */
  leave(): void {
    this.#turn += 1;
    const leave = this.#leave;
    this.#leave = nothing;
    leave();
  }

  /** Answers a function that tells whether what goes on now has not been left since. */
  watch(): () => boolean {
    const turn = this.#turn;
    return () => turn === this.#turn;
  }

  /** Subscribes, in place of what went on. */
  subscribe<Value, Failure>(
    source: Observable<Value, Failure>,
    observer: Observer<Value, Failure>,
  ): void {
    this.leave();
    const isLive = this.watch();
    let subscription: Unsubscribable | undefined;
    this.#leave = () => subscription?.unsubscribe();
    subscription = source.subscribe({
      next: (value) => {
        if (isLive()) observer.next(value);
      },
      error: (failure) => {
        if (isLive()) observer.error(failure);
      },
      complete: () => {
        if (isLive()) observer.complete();
      },
    });
    // Ended, or replaced, while it was subscribed to: it could not be left then.
    if (!isLive()) subscription.unsubscribe();
  }

  /** Waits, in place of what went on; not at all for 0, and not on when the browser comes online or the page is shown. */
  wait(
    ms: number,
    signal: AbortSignal | null | undefined,
    after: { again(): void; aborted(): void },
  ): void {
    this.leave();
    if (signal?.aborted) after.aborted();
    else if (ms === 0) after.again();
    else {
      const cancel = this.#clock.after(ms, after.again);
      const unlisten = [
        onPage('online', after.again),
        onPage('visibilitychange', () => isShown() && after.again()),
      ];
      signal?.addEventListener('abort', after.aborted);
      this.#leave = () => {
        cancel();
        for (const leave of unlisten) leave();
        signal?.removeEventListener('abort', after.aborted);
      };
    }
  }
}

function nothing(): void {}
