import { createHash } from 'node:crypto';
import { BrokerError, type Position } from '@brokerfeed/core';

const DIGEST_BYTES = 18;

/** What an append with a key wrote. */
export interface KeyedAppend {
  readonly digest: string;
  readonly at: number;
  readonly sequence: number;
  readonly positions: readonly Position[];
}

/** The keys of the idempotency window, oldest first. */
export class IdempotencyKeys {
  readonly #keyed = new Map<string, KeyedAppend>();
  readonly #windowMs: number;
  readonly #maxKeys: number;

  constructor(windowMs: number, maxKeys: number) {
    this.#windowMs = windowMs;
    this.#maxKeys = maxKeys;
  }

  /** Finds the earlier append of a key, or undefined. Throws where its values were others. */
  find(scope: string, digest: string, now: number): KeyedAppend | undefined {
    this.#forget(now);
    const earlier = this.#keyed.get(scope);
    if (earlier !== undefined) checkDigest(earlier.digest, digest);
    return earlier;
  }

  remember(scope: string, keyed: KeyedAppend): void {
    this.#keyed.delete(scope);
    this.#keyed.set(scope, keyed);
    if (this.#keyed.size > this.#maxKeys) {
      for (const oldest of this.#keyed.keys()) {
        this.#keyed.delete(oldest);
        break;
      }
    }
  }

  peek(scope: string): KeyedAppend | undefined {
    return this.#keyed.get(scope);
  }

  forget(scope: string): void {
    this.#keyed.delete(scope);
  }

  entries(now: number): IterableIterator<[string, KeyedAppend]> {
    this.#forget(now);
    return this.#keyed.entries();
  }

  #forget(now: number): void {
    for (const [scope, { at }] of this.#keyed) {
      if (at + this.#windowMs > now) return;
      this.#keyed.delete(scope);
    }
  }
}

/** Refuses a key that is used again for other values. */
export function checkDigest(earlier: string, digest: string): void {
  if (earlier !== digest) {
    throw new BrokerError('IDEMPOTENCY_CONFLICT', 'the idempotency key was used for other values');
  }
}

/** Names a key: of one topic, or of commits that span topics. */
export function keyScope(topic: string | undefined, key: string): string {
  return topic === undefined ? `*${key}` : `${topic.length}:${topic}${key}`;
}

/** Stands for the values of an append, since a key outlives them. */
export function valuesDigest(values: unknown): string {
  const hash = createHash('sha256').update(JSON.stringify(values)).digest();
  return hash.subarray(0, DIGEST_BYTES).toString('base64');
}
