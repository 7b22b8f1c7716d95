import { delay } from '@brokerfeed/core';
import type { Commands } from './commands.ts';
import type { ResolvedOptions } from './options.ts';

const RETRY_MS = 2;
const LONGEST_RETRY_MS = 50;

/** Ends one blocking command before its time, at most once. */
export class Wake {
  readonly #commands: Commands;
  readonly #options: ResolvedOptions;
  readonly #clientId: number | undefined;
  readonly #serverId: string | undefined;
  readonly #over = new AbortController();
  #phase: 'idle' | 'asked' = 'idle';

  /** `clientId` is the blocked connection's on the server `serverId`. */
  constructor(
    commands: Commands,
    options: ResolvedOptions,
    clientId: number | undefined,
    serverId: string | undefined,
  ) {
    this.#commands = commands;
    this.#options = options;
    this.#clientId = clientId;
    this.#serverId = serverId;
  }

  /** Makes the command return now. Where the server refuses, it returns when its time is over. */
  now(): void {
    if (this.#phase === 'asked' || this.#clientId === undefined) return;
    this.#phase = 'asked';
    this.#unblock(this.#clientId).catch((error: unknown) => {
      this.#options.observer.logger.debug({ err: error }, 'redis.unblock');
    });
  }

  /** The command has returned. */
  end(): void {
    this.#over.abort();
  }

  async #unblock(clientId: number): Promise<void> {
    const { signal } = this.#over;
    const doing = 'waking a live read';
    for (let wait = RETRY_MS; !signal.aborted; wait = Math.min(wait * 2, LONGEST_RETRY_MS)) {
      const unblocked = await this.#commands.run(
        (redis, serverId) => {
          // After a failover the commands may go elsewhere, and there the id is another client's.
          if (signal.aborted || serverId !== this.#serverId) return Promise.resolve(1);
          return redis.client('UNBLOCK', clientId);
        },
        { doing, repeatable: true, signal },
      );
      // 0: it has not reached the server yet, or has just returned.
      if (unblocked === 1) return;
      await delay(this.#options.clock, wait, signal);
    }
  }
}
