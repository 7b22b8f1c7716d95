import type { Announcement, AnnouncementReceiver, Announcer } from './announcer.ts';
import { checkValue, NO_HEADERS } from './append-check.ts';
import { type SealScope, seal } from './seal.ts';
import type { KeyRing, KeySource } from './seal-keys.ts';
import type { SealOpener } from './seal-opener.ts';

/** Carries announcements sealed: between instances they pass through the same server as the log. */
export class SealedAnnouncer implements Announcer {
  readonly #announcer: Announcer;
  readonly #keys: KeySource | undefined;
  readonly #opener: SealOpener;
  /** Opened once, however many of this process hear it. Undefined where it does not open. */
  readonly #opened = new WeakMap<
    Announcement,
    { readonly announcement: Announcement | 'no keys' | undefined }
  >();

  /** Without keys it does not seal, and only opens. */
  constructor(announcer: Announcer, keys: KeySource | undefined, opener: SealOpener) {
    this.#announcer = announcer;
    this.#keys = keys;
    this.#opener = opener;
  }

  announce(topic: string, value: string | (() => string)): void {
    const keys = this.#keys;
    const sealing = (): string => {
      const text: unknown = typeof value === 'function' ? value() : value;
      checkValue(text);
      return keys === undefined ? text : seal(text, keys().first, scopeOf(topic));
    };
    this.#announcer.announce(topic, sealing);
  }

  listen(topic: string, receiver: AnnouncementReceiver): Promise<() => void> {
    return this.#announcer.listen(topic, {
      receive: (sealed) => {
        const opened = this.#open(sealed);
        if (opened === 'no keys') receiver.interrupted();
        else if (opened !== undefined) receiver.receive(opened);
      },
      interrupted: () => receiver.interrupted(),
      end: (error) => receiver.end(error),
    });
  }

  #open(sealed: Announcement): Announcement | 'no keys' | undefined {
    let opened = this.#opened.get(sealed);
    if (opened === undefined) {
      opened = { announcement: this.#openNow(sealed) };
      this.#opened.set(sealed, opened);
    }
    return opened.announcement;
  }

  #openNow({ kind, topic, value }: Announcement): Announcement | 'no keys' | undefined {
    let ring: KeyRing;
    try {
      ring = this.#opener.ring(topic);
    } catch {
      // It was told, and an announcement does not come again.
      return 'no keys';
    }
    const headers = NO_HEADERS;
    const entry = this.#opener.open({ value, headers }, ring, scopeOf(topic), () => headers);
    return entry.unreadable === undefined
      ? Object.freeze({ kind, topic, value: entry.value })
      : undefined;
  }
}

function scopeOf(topic: string): SealScope {
  return { purpose: 'announcement', topic };
}
