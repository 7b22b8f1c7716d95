import type { Announcement, AnnouncementReceiver, Announcer } from './announcer.ts';
import { checkTopic, checkValue } from './append-check.ts';
import { BrokerError } from './errors.ts';

/** Who listens to which topic in this process, on however many brokers of one store. */
export class Audience {
  readonly #receivers = new Map<string, Set<AnnouncementReceiver>>();

  /** Answers who listens, or undefined where nobody does: the whole cost of an announcement that nobody hears. */
  of(topic: string): ReadonlySet<AnnouncementReceiver> | undefined {
    // The usual case is worth a look of its own: a look into an empty map still hashes the name.
    return this.#receivers.get(topic);
  }

  join(topic: string, receiver: AnnouncementReceiver): void {
    const receivers = this.#receivers.get(topic);
    if (receivers === undefined) this.#receivers.set(topic, new Set([receiver]));
    else receivers.add(receiver);
  }

  leave(topic: string, receiver: AnnouncementReceiver): void {
    const receivers = this.#receivers.get(topic);
    if (receivers?.delete(receiver) && receivers.size === 0) this.#receivers.delete(topic);
  }
}

/** The announcer of a broker whose instances are all in this process. */
export class LocalAnnouncer implements Announcer {
  readonly #audience: Audience;
  /** The receivers that came through this broker, by what removes them: they end with it. */
  readonly #own = new Map<() => void, AnnouncementReceiver>();
  #state: 'open' | 'closed' = 'open';

  constructor(audience: Audience) {
    this.#audience = audience;
  }

  announce(topic: string, value: string | (() => string)): void {
    if (this.#state === 'closed') throw closedError();
    const receivers = this.#audience.of(topic);
    if (receivers === undefined) return;
    const text: unknown = typeof value === 'function' ? value() : value;
    checkValue(text);
    const announcement: Announcement = Object.freeze({ kind: 'announcement', topic, value: text });
    for (const receiver of receivers) receiver.receive(announcement);
  }

  async listen(topic: string, receiver: AnnouncementReceiver): Promise<() => void> {
    if (this.#state === 'closed') throw closedError();
    checkTopic(topic);
    this.#audience.join(topic, receiver);
    const remove = (): void => {
      this.#own.delete(remove);
      this.#audience.leave(topic, receiver);
    };
    this.#own.set(remove, receiver);
    return remove;
  }

  /** Refuses what comes after, and ends every receiver that came through this broker once `drained` is. Idempotent. */
  async close(drained: Promise<void>): Promise<void> {
    this.#state = 'closed';
    // A watch has both sources: what was appended before the close comes to it before its end.
    await drained;
    for (const [remove, receiver] of [...this.#own]) {
      remove();
      receiver.end(closedError());
    }
  }
}

function closedError(): BrokerError {
  return new BrokerError('CLOSED', 'the broker is closed');
}
