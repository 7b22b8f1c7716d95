import type { Announcement, AnnouncementReceiver, Announcer } from './announcer.ts';
import { checkValue, NO_HEADERS } from './append-check.ts';
import { type SealScope, seal } from './seal.ts';
import type { SealingKey } from './seal-keys.ts';
import type { SealOpener } from './seal-opener.ts';

/** Carries announcements sealed: between instances they pass through the same server as the log. */
export class SealedAnnouncer implements Announcer {
  readonly #announcer: Announcer;
  readonly #key: SealingKey | undefined;
  readonly #opener: SealOpener;
  /** Opened once, however many of this process hear it. Undefined where it does not open. */
  readonly #opened = new WeakMap<
    Announcement,
    { readonly announcement: Announcement | undefined }
  >();

  /** Without a key it does not seal, and only opens. */
  constructor(announcer: Announcer, key: SealingKey | undefined, opener: SealOpener) {
    this.#announcer = announcer;
    this.#key = key;
    this.#opener = opener;
  }

  announce(topic: string, value: string | (() => string)): void {
    const key = this.#key;
    const sealing = (): string => {
      const text: unknown = typeof value === 'function' ? value() : value;
      checkValue(text);
      return key === undefined ? text : seal(text, key, scopeOf(topic));
    };
    this.#announcer.announce(topic, sealing);
  }

  listen(topic: string, receiver: AnnouncementReceiver): Promise<() => void> {
    return this.#announcer.listen(topic, {
      receive: (sealed) => {
        const announcement = this.#open(sealed);
        if (announcement !== undefined) receiver.receive(announcement);
      },
      interrupted: () => receiver.interrupted(),
      end: (error) => receiver.end(error),
    });
  }

  #open(sealed: Announcement): Announcement | undefined {
    let opened = this.#opened.get(sealed);
    if (opened === undefined) {
      const { topic, value } = sealed;
      const headers = NO_HEADERS;
      const entry = this.#opener.open({ value, headers }, scopeOf(topic), () => headers);
      const announcement = Object.freeze({ kind: sealed.kind, topic, value: entry.value });
      opened = { announcement: entry.unreadable === undefined ? announcement : undefined };
      this.#opened.set(sealed, opened);
    }
    return opened.announcement;
  }
}

function scopeOf(topic: string): SealScope {
  return { purpose: 'announcement', topic };
}
