import type { Logger } from '@brokerfeed/core';
import type { Redis } from 'ioredis';

/** Warns once of a server that may evict topics when its memory is full: subscribers would then meet a new epoch. */
export class EvictionWarning {
  readonly #logger: Logger;
  #phase: 'watching' | 'warned' = 'watching';

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Asks a server. Never throws; one that does not say is not worth a warning. */
  check(redis: Redis): void {
    if (this.#phase === 'warned') return;
    redis.info('memory').then(
      (info) => {
        const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
        const bounded = /^maxmemory:[1-9]/m.test(info);
        if (!bounded || policy === undefined || policy === 'noeviction') return;
        // Several servers may have been asked at once.
        if (this.#phase === 'warned') return;
        this.#phase = 'warned';
        this.#logger.warn({ policy }, 'redis.eviction');
      },
      () => {},
    );
  }
}
