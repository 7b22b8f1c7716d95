import { NO_HEADERS } from './append-check.ts';
import type { Entry } from './broker.ts';
import type { Clock } from './clock.ts';
import type { Observer } from './observer.ts';
import {
  isSealed,
  openSealed,
  SealRefusal,
  type SealRefusalReason,
  type SealScope,
} from './seal.ts';
import type { KeyRing, KeySource } from './seal-keys.ts';

/** One line at its level per reason in this time, in milliseconds; the others in between are at debug. */
const LOUD_EVERY_MS = 10_000;

/** Why something was not opened: the entry's own reason, or that there were no keys to try. */
type Refused = SealRefusalReason | 'keys';

/** The address of an entry, for the log. */
export interface SealPlace {
  readonly generation: number;
  readonly index: number;
}

/** Opens what a store holds. What does not open is counted by reason, and told so that the log stays readable. */
export class SealOpener {
  readonly #keys: KeySource;
  readonly #acceptsPlaintext: boolean;
  readonly #observer: Observer;
  readonly #clock: Clock;
  readonly #refused = new Map<Refused, { count: number; quietUntil: number }>();

  constructor(keys: KeySource, acceptsPlaintext: boolean, observer: Observer, clock: Clock) {
    this.#keys = keys;
    this.#acceptsPlaintext = acceptsPlaintext;
    this.#observer = observer;
    this.#clock = clock;
  }

  /**
   * Answers the keys to open with. Throws `UNAVAILABLE` where they cannot be had: what was sealed is not lost then, and can
   * be read later.
   */
  ring(topic: string): KeyRing {
    try {
      return this.#keys();
    } catch (error) {
      this.#refuse('keys', error, topic, undefined);
      throw error;
    }
  }

  /**
   * Answers what was sealed, with the headers that `headers` opens; the entry itself where it is plain text and that is
   * accepted; or one that is unreadable.
   */
  open(
    entry: Entry,
    ring: KeyRing,
    scope: SealScope,
    headers: () => Entry['headers'],
    place?: SealPlace,
  ): Entry {
    try {
      if (isSealed(entry.value)) {
        const opened = { value: openSealed(entry.value, ring, scope), headers: headers() };
        this.#observer.meter.count('brokerfeed.sealed.opened', 1);
        return opened;
      }
      if (this.#acceptsPlaintext) return entry;
      throw new SealRefusal('unsealed');
    } catch (error) {
      if (!(error instanceof SealRefusal)) throw error;
      this.#refuse(error.reason, error, scope.topic, place);
      return { value: '', headers: NO_HEADERS, unreadable: error };
    }
  }

  /** Logs what was refused, if anything. */
  summarise(): void {
    for (const [reason, { count }] of this.#refused) {
      this.#observer.logger.info({ reason, count }, 'brokerfeed.sealed.refused.total');
    }
    this.#refused.clear();
  }

  #refuse(reason: Refused, error: unknown, topic: string, place: SealPlace | undefined): void {
    const now = this.#clock.now();
    const tally = this.#refused.get(reason) ?? { count: 0, quietUntil: 0 };
    this.#refused.set(reason, tally);
    tally.count += 1;
    this.#observer.meter.count('brokerfeed.sealed.refused', 1, { reason });
    // Keys that cannot be had stop every reader; what does not open is a matter of that entry.
    const loud = reason === 'keys' ? 'error' : 'warn';
    const level = now < tally.quietUntil ? 'debug' : loud;
    if (level === loud) tally.quietUntil = now + LOUD_EVERY_MS;
    const fields = { topic, ...place, reason, count: tally.count, err: error };
    this.#observer.logger[level](fields, 'brokerfeed.sealed.refused');
  }
}
