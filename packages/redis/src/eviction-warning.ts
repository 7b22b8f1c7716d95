import type { Logger } from '@brokerfeed/core';
import type { Redis } from 'ioredis';

/** Warns once of a server that may evict topics when its memory is full: subscribers would then meet a new epoch. */
export class EvictionWarning {
  readonly #logger: Logger;
  #phase: 'unasked' | 'asked' = 'unasked';

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Asks the first server it is given. Never throws; a server that does not say is not worth a warning. */
  check(redis: Redis): void {
    if (this.#phase === 'asked') return;
    this.#phase = 'asked';
    redis.info('memory').then(
      (info) => {
        const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
        const bounded = /^maxmemory:[1-9]/m.test(info);
        if (bounded && policy !== undefined && policy !== 'noeviction') {
          this.#logger.warn({ policy }, 'redis.eviction');
        }
      },
      () => {},
    );
  }
}
