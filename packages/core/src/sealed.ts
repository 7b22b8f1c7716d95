import type { Broker } from './broker.ts';
import { type Clock, systemClock } from './clock.ts';
import { refuseOption } from './option-check.ts';
import { keySource, type SealKeys } from './seal-keys.ts';
import { SealOpener } from './seal-opener.ts';
import { SealedAnnouncer } from './sealed-announcer.ts';
import { SealedLog } from './sealed-log.ts';
import type { CommitBroker } from './topic-commit.ts';

/** The options of {@link sealed}. */
export interface SealedOptions {
  /**
   * The first seals, all open. To change keys, add the new one behind the old everywhere, then put it first; take the old
   * one out when retention has taken what it sealed. A key seals four billion entries safely, not more.
   *
   * A function is asked again and again (see {@link SealKeys}), so that keys change without a restart. While it throws,
   * appends and reads are `UNAVAILABLE` as in an outage of the store: what was sealed is not skipped.
   */
  readonly keys: SealKeys;
  /**
   * Whether to seal. A service begins with `seal: false` and `acceptPlaintext: true` on every instance, so that all can open
   * before any seals; then seals; and stops accepting plain text when retention has taken it.
   * @default true
   */
  readonly seal?: boolean;
  /**
   * Whether what is not sealed is read. While it is, whoever can write to the store can write entries.
   * @default false
   */
  readonly acceptPlaintext?: boolean;
  /** @default the system's */
  readonly clock?: Clock;
}

/**
 * Makes a broker whose store sees sealed values only: AES-256-GCM over values and headers, bound to the topic, and those of
 * a commit to each other. What is left to see are topics, times, sizes, how many entries a commit has, and idempotency
 * keys. The store can still leave out, repeat and reorder commits: that is what positions are for.
 *
 * An entry that does not open is skipped, counted by reason and logged. A sealed value is a third longer than what was
 * sealed and some 50 bytes more: the broker's `maxEntryBytes` counts those.
 *
 * Make it once, and use it in place of the broker: what stands on it is shared by all its feeds. What a broker can do
 * besides appending and reading is still asked of itself. Closing it closes the broker. Throws `OPTION_INVALID`.
 */
export function sealed(broker: CommitBroker, options: SealedOptions): CommitBroker;
export function sealed(broker: Broker, options: SealedOptions): Broker;
export function sealed(broker: Broker, options: SealedOptions): Broker {
  if (typeof options !== 'object' || options === null)
    refuseOption('options', 'an object', options);
  const seals = booleanOption('seal', options.seal, true);
  const acceptsPlaintext = booleanOption('acceptPlaintext', options.acceptPlaintext, false);
  if (!seals && !acceptsPlaintext)
    refuseOption(
      'seal',
      'true unless acceptPlaintext is: it could not read its own appends',
      false,
    );
  const keys = keySource(options.keys);
  const { log, announcer } = broker;
  const opener = new SealOpener(keys, acceptsPlaintext, log.observer, options.clock ?? systemClock);
  const sealedLog = new SealedLog(log, { keys, seals, acceptsPlaintext }, opener);
  const close = async (): Promise<void> => {
    await broker.close();
    await sealedLog.settled();
    opener.summarise();
  };
  return {
    name: broker.name,
    log: sealedLog,
    ...(announcer && {
      announcer: new SealedAnnouncer(announcer, seals ? keys : undefined, opener),
    }),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function booleanOption(name: string, value: boolean | undefined, fallback: boolean): boolean {
  if (value !== undefined && typeof value !== 'boolean') refuseOption(name, 'a boolean', value);
  return value ?? fallback;
}
