import {
  type AnnouncementReceiver,
  type Announcer,
  BrokerError,
  type BrokerErrorCode,
  checkTopic,
  checkValue,
  describe,
} from '@brokerfeed/core';
import { AnnouncerTopic } from './announcer-topic.ts';
import type { Commands, Send } from './commands.ts';
import { elapsed } from './elapsed.ts';
import type { LiveReaders } from './live-readers.ts';
import type { ResolvedOptions } from './options.ts';
import { requirePrimary } from './primary.ts';
import { toBrokerError } from './redis-error.ts';

/**
 * Announcements that may be on their way at once. A Redis that answers no more would have them gathered in memory, and
 * they are of use at once or never.
 */
const MAX_UNDER_WAY = 10_000;

/**
 * Announcements as messages on a channel of each topic, which lies in the topic's slot. This process hears its own from
 * Redis too, so that all hear one order; and it cannot know whether anybody else listens.
 */
export class RedisAnnouncer implements Announcer {
  readonly #options: ResolvedOptions;
  readonly #commands: Commands;
  readonly #readers: LiveReaders;
  readonly #topics = new Map<string, AnnouncerTopic>();
  /** The kinds of failure that were logged as warnings. */
  readonly #warned = new Set<BrokerErrorCode>();
  /** When servers were last known to be primaries. */
  readonly #provedAt = new Map<string, number>();
  readonly #underWay = new Set<Promise<void>>();
  #closed: BrokerError | undefined;

  constructor(options: ResolvedOptions, commands: Commands, readers: LiveReaders) {
    this.#options = options;
    this.#commands = commands;
    this.#readers = readers;
  }

  announce(topic: string, value: string | (() => string)): void {
    if (this.#closed !== undefined) throw this.#closed;
    checkTopic(topic);
    const text: unknown = typeof value === 'function' ? value() : value;
    checkValue(text);
    if (this.#underWay.size >= MAX_UNDER_WAY) {
      this.#failed(new BrokerError('UNAVAILABLE', 'Redis takes no more announcements'));
      return;
    }
    const sending = this.#send(topic, text);
    this.#underWay.add(sending);
    void sending.then(() => this.#underWay.delete(sending));
  }

  async listen(topic: string, receiver: AnnouncementReceiver): Promise<() => void> {
    if (this.#closed !== undefined) throw this.#closed;
    checkTopic(topic);
    return await this.#topic(topic).listen(receiver);
  }

  /** Ends every receiver, refuses what comes after, and waits for the announcements under way. */
  async close(error: BrokerError): Promise<void> {
    this.#closed = error;
    for (const topic of [...this.#topics.values()]) topic.end(error);
    await Promise.all(this.#underWay);
  }

  /** Never rejects. */
  async #send(topic: string, text: string): Promise<void> {
    const channel = this.#options.keys.said(topic);
    const publish: Send<unknown> = (redis, serverId = '') => {
      const { clock, checkMs } = this.#options;
      const sent = redis.spublish(channel, text);
      const provedAt = this.#provedAt.get(serverId);
      if (provedAt !== undefined && elapsed(clock, provedAt) < checkMs) return sent;
      this.#provedAt.set(serverId, clock.now());
      // A replica takes messages too, and nobody hears them.
      return Promise.all([sent, requirePrimary(redis)]);
    };
    try {
      await this.#commands.run(channel, publish, {
        doing: `an announcement on topic ${describe(topic)}`,
        // A second try could come after a later announcement, or be the second of one that was made.
        repeatable: 'never',
      });
    } catch (error) {
      this.#failed(error);
    }
  }

  #topic(name: string): AnnouncerTopic {
    const open = this.#topics.get(name);
    if (open !== undefined) return open;
    const channel = this.#options.keys.said(name);
    const topic = new AnnouncerTopic({
      topic: name,
      subscribe: (ear) => this.#readers.listen(channel, ear),
      onEnd: () => {
        if (this.#topics.get(name) === topic) this.#topics.delete(name);
      },
      clock: this.#options.clock,
    });
    this.#topics.set(name, topic);
    return topic;
  }

  #failed(cause: unknown): void {
    if (this.#closed !== undefined) return;
    const { logger, meter } = this.#options.observer;
    const error = toBrokerError(cause, 'an announcement');
    const { code } = error;
    meter.count('brokerfeed.announce.failed', 1, { code });
    // Loud once: a burst of them says no more.
    if (this.#warned.has(code)) logger.debug({ err: error }, 'redis.announce');
    else logger.warn({ err: error }, 'redis.announce');
    this.#warned.add(code);
  }
}
