import type { BrokerLog, Commit, Loss, Position } from '@brokerfeed/core';
import { onTestFinished } from 'vitest';

/** A live read that keeps what it was given. */
export class Follower {
  readonly commits: Commit[] = [];
  /** Resolves when `live()` was called; rejects where the read ended without. */
  readonly live: Promise<void>;
  /** How the read ended. */
  readonly ended: Promise<Loss | undefined>;
  /** Calls of the sink in order: `live`, or the number of commits. */
  readonly calls: ('live' | number)[] = [];
  readonly #abort = new AbortController();
  readonly #waiting = new Set<() => void>();

  constructor(
    log: BrokerLog,
    topic: string,
    from: Position,
    onCommits: (commits: readonly Commit[]) => void = () => {},
  ) {
    let becameLive = (): void => {};
    const live = new Promise<void>((resolve) => {
      becameLive = resolve;
    });
    const sink = {
      live: () => {
        this.calls.push('live');
        becameLive();
      },
      commits: (commits: readonly Commit[]) => {
        this.calls.push(commits.length);
        this.commits.push(...commits);
        onCommits(commits);
        for (const look of [...this.#waiting]) look();
      },
    };
    this.ended = log.follow(topic, from, sink, this.#abort.signal);
    this.live = Promise.race([live, this.#endedEarly('live')]);
    // A law that looks only at one of them must not leave the other as an unhandled rejection.
    this.ended.catch(() => {});
    this.live.catch(() => {});
  }

  /** Resolves when as many commits have come. Rejects where the read ends before. */
  async received(count: number): Promise<void> {
    if (this.commits.length >= count) return;
    const enough = new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.commits.length < count) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
    await Promise.race([enough, this.#endedEarly(`${count} commits`)]);
  }

  /** Aborts the read without waiting for its end. */
  abort(): void {
    this.#abort.abort();
  }

  /** Ends the read, however it stands. */
  async stop(): Promise<void> {
    this.abort();
    await this.ended.catch(() => {});
  }

  async #endedEarly(awaited: string): Promise<never> {
    const loss = await this.ended;
    throw new Error(`the live read ended (${loss ?? 'aborted'}) before ${awaited}`);
  }
}

/** Starts a live read that ends with the test, and waits until it stands. */
export async function follow(
  log: BrokerLog,
  topic: string,
  from: Position,
  onCommits?: (commits: readonly Commit[]) => void,
): Promise<Follower> {
  const follower = startFollow(log, topic, from, onCommits);
  await follower.live;
  return follower;
}

/** Starts a live read that ends with the test. It may be refused. */
export function startFollow(
  log: BrokerLog,
  topic: string,
  from: Position,
  onCommits?: (commits: readonly Commit[]) => void,
): Follower {
  const follower = new Follower(log, topic, from, onCommits);
  onTestFinished(() => follower.stop());
  return follower;
}
