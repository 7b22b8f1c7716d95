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
import type { KeyRing } from './seal-keys.ts';

/** One warning per reason in this time, in milliseconds; the others in between are at debug. */
const WARN_EVERY_MS = 10_000;

/** The address of an entry, for the log. */
export interface SealPlace {
  readonly generation: number;
  readonly index: number;
}

/** Opens what a store holds. What does not open is counted by reason, and told so that the log stays readable. */
export class SealOpener {
  readonly #keys: KeyRing;
  readonly #acceptsPlaintext: boolean;
  readonly #observer: Observer;
  readonly #clock: Clock;
  readonly #refused = new Map<SealRefusalReason, { count: number; quietUntil: number }>();

  constructor(keys: KeyRing, acceptsPlaintext: boolean, observer: Observer, clock: Clock) {
    this.#keys = keys;
    this.#acceptsPlaintext = acceptsPlaintext;
    this.#observer = observer;
    this.#clock = clock;
  }

  /**
   * Answers what was sealed, with the headers that `headers` opens; the entry itself where it is plain text and that is
   * accepted; or one that is unreadable.
   */
  open(entry: Entry, scope: SealScope, headers: () => Entry['headers'], place?: SealPlace): Entry {
    try {
      if (isSealed(entry.value)) {
        const opened = { value: this.text(entry.value, scope), headers: headers() };
        this.#observer.meter.count('brokerfeed.sealed.opened', 1);
        return opened;
      }
      if (this.#acceptsPlaintext) return entry;
      throw new SealRefusal('unsealed');
    } catch (error) {
      if (!(error instanceof SealRefusal)) throw error;
      this.#refuse(error, scope.topic, place);
      return { value: '', headers: NO_HEADERS, unreadable: error };
    }
  }

  /** Opens a sealed text. Throws a {@link SealRefusal}. */
  text(text: string, scope: SealScope): string {
    return openSealed(text, this.#keys, scope);
  }

  /** Logs what was refused, if anything. */
  summarise(): void {
    for (const [reason, { count }] of this.#refused) {
      this.#observer.logger.info({ reason, count }, 'brokerfeed.sealed.refused.total');
    }
    this.#refused.clear();
  }

  #refuse(error: SealRefusal, topic: string, place: SealPlace | undefined): void {
    const { reason } = error;
    const now = this.#clock.now();
    const tally = this.#refused.get(reason) ?? { count: 0, quietUntil: 0 };
    this.#refused.set(reason, tally);
    tally.count += 1;
    this.#observer.meter.count('brokerfeed.sealed.refused', 1, { reason });
    const level = now < tally.quietUntil ? 'debug' : 'warn';
    if (level === 'warn') tally.quietUntil = now + WARN_EVERY_MS;
    const fields = { topic, ...place, reason, count: tally.count, err: error };
    this.#observer.logger[level](fields, 'brokerfeed.sealed.refused');
  }
}
