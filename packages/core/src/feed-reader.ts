import { FeedPump } from './feed-pump.ts';
import { toRefusal } from './feed-refusal.ts';
import type { FeedFrame, FeedSession } from './feed-session.ts';
import type { PushTarget } from './push-target.ts';

/** Hands the frames of one subscription to its carrier, which pulls them or has them pushed. */
export class FeedReader<A extends object = object> {
  readonly #session: FeedSession<A>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(session: FeedSession<A>) {
    this.#session = session;
  }

  /**
   * Resolves with the next frame, or undefined once the subscription was closed. Rejects with a `FeedRefusal` when it
   * cannot go on, or with what a callback threw; it is closed then. Calls that overlap are answered in order.
   */
  next(): Promise<FeedFrame | undefined> {
    const frame = this.#last.then(() => this.#pull());
    this.#last = frame.then(ignore, ignore);
    return frame;
  }

  /**
   * Pushes all frames to a connection instead, until the subscription is closed; then resolves. Rejects as {@link next}
   * does. Goes on where {@link next} has stopped, and is the end of asking it.
   */
  push(target: PushTarget): Promise<void> {
    const { closing } = this.#session;
    return new Promise((resolve, reject) => {
      const pump = new FeedPump(this.#session, target, (error) => {
        reject(toRefusal(error));
        this.close();
      });
      const stop = (): void => {
        pump.stop();
        resolve();
      };
      // Closed already: a pump that was started now would never be told to stop.
      if (closing.closed) return stop();
      closing.whenClosed(stop);
      pump.start();
    });
  }

  /** Leaves the topic and settles a pending {@link next} with undefined. Idempotent. */
  close(): void {
    this.#session.close();
  }

  async #pull(): Promise<FeedFrame | undefined> {
    const session = this.#session;
    try {
      while (!session.closing.closed) {
        const frame = await session.step();
        if (frame === undefined) continue;
        if (session.closing.closed) return undefined;
        session.delivered(frame.token);
        return frame;
      }
      return undefined;
    } catch (error) {
      this.close();
      throw toRefusal(error);
    }
  }
}

function ignore(): void {}
