import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';

/** A Lua script, called by its digest. */
export class Script {
  readonly #text: string;
  readonly #digest: string;

  constructor(text: string) {
    this.#text = text;
    this.#digest = createHash('sha1').update(text).digest('hex');
  }

  /**
   * Gives it to a server ahead of the first call. Where that is not allowed, or the server forgets it, calls bring the text
   * themselves; but then the first ones may overtake each other.
   */
  async load(redis: Redis): Promise<void> {
    await redis.script('LOAD', this.#text).catch((error: unknown) => {
      if (!(error instanceof Error) || error.name !== 'ReplyError') throw error;
    });
  }

  async call(
    redis: Redis,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    try {
      return await redis.evalsha(this.#digest, keys.length, ...keys, ...args);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await redis.eval(this.#text, keys.length, ...keys, ...args);
    }
  }
}
