import {
  type Announcement,
  type AnnouncementReceiver,
  BrokerError,
  type Clock,
  delay,
  describe,
} from '@brokerfeed/core';
import type { Ear } from './live-reader.ts';
import { toBrokerError } from './redis-error.ts';
import { until } from './until.ts';

export interface AnnouncerTopicOptions {
  readonly topic: string;
  /** Subscribes to the topic's channel. Resolves, with what ends it, when the server has confirmed it. */
  subscribe(ear: Ear): Promise<() => void>;
  /** Called once, when it takes no more receivers. */
  onEnd(): void;
  readonly clock: Clock;
}

interface Listener {
  readonly receiver: AnnouncementReceiver;
  /** Settles when what is announced from then on comes to the receiver, or will not. */
  readonly settle: (error?: BrokerError) => void;
  phase: 'joining' | 'hearing';
}

/** Waits before the next try to subscribe: as long in all as a live read is tried again. */
const TRIES_MS: readonly number[] = [0, 250, 1_000, 4_000, 10_000, 16_000];
/** A subscription that stood for so long does not count as a try. */
const STOOD_MS = 30_000;

/** Those of this process who hear the announcements of one topic, on one subscription. */
export class AnnouncerTopic {
  readonly #options: AnnouncerTopicOptions;
  readonly #listeners = new Set<Listener>();
  readonly #ending = new AbortController();
  #phase: 'joining' | 'subscribed' = 'joining';

  /** Subscribes, for as long as there is somebody who listens. */
  constructor(options: AnnouncerTopicOptions) {
    this.#options = options;
    void this.#run();
  }

  /** Adds a receiver. Resolves, with what removes it, once all that is announced from then on comes to it. */
  async listen(receiver: AnnouncementReceiver): Promise<() => void> {
    let listener: Listener | undefined;
    await new Promise<void>((resolve, reject) => {
      const settle = (error?: BrokerError): void => (error ? reject(error) : resolve());
      listener = { receiver, settle, phase: 'joining' };
      this.#listeners.add(listener);
      if (this.#phase === 'subscribed') this.#join(listener);
    });
    return () => {
      if (this.#listeners.delete(listener as Listener)) this.#endWhenEmpty();
    };
  }

  /** Ends every receiver. */
  end(error: BrokerError): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.#endWhenEmpty();
    for (const { phase, receiver, settle } of listeners) {
      if (phase === 'joining') settle(error);
      else receiver.end(error);
    }
  }

  /** Subscribes again whenever the subscription is lost. Never rejects. */
  async #run(): Promise<void> {
    const { clock, topic } = this.#options;
    const { signal } = this.#ending;
    for (let tried = 0; !signal.aborted; tried += 1) {
      const began = clock.now();
      let failure: BrokerError;
      try {
        failure = await this.#hear();
      } catch (error) {
        if (signal.aborted) return;
        failure = toBrokerError(error, `listening to topic ${describe(topic)}`);
      }
      if (clock.now() - began >= STOOD_MS) tried = 0;
      const ms = TRIES_MS[tried];
      if (ms === undefined || failure.code !== 'UNAVAILABLE') return this.end(failure);
      await delay(clock, ms, signal);
    }
  }

  /** Hears until the subscription is lost, and answers why. Rejects where there is none to be had, or nobody listens. */
  async #hear(): Promise<BrokerError> {
    const { signal } = this.#ending;
    let lose = (_: BrokerError): void => {};
    const lost = new Promise<BrokerError>((resolve) => {
      lose = resolve;
    });
    const subscribing = this.#options.subscribe({
      heard: (text) => this.#pass(text),
      broken: (error) => lose(error),
    });
    let unsubscribe: () => void;
    try {
      unsubscribe = await until(subscribing, signal);
    } catch (error) {
      // Nobody waits for it any more.
      subscribing.then(
        (leave) => leave(),
        () => {},
      );
      throw error;
    }
    this.#phase = 'subscribed';
    for (const listener of [...this.#listeners]) {
      if (listener.phase === 'joining') this.#join(listener);
      else listener.receiver.interrupted();
    }
    try {
      return await until(lost, signal);
    } finally {
      this.#phase = 'joining';
      unsubscribe();
    }
  }

  #pass(text: string): void {
    const { topic } = this.#options;
    const announcement: Announcement = Object.freeze({ kind: 'announcement', topic, value: text });
    for (const { phase, receiver } of this.#listeners) {
      if (phase === 'hearing') receiver.receive(announcement);
    }
  }

  #join(listener: Listener): void {
    listener.phase = 'hearing';
    listener.settle();
  }

  #endWhenEmpty(): void {
    if (this.#listeners.size > 0 || this.#ending.signal.aborted) return;
    this.#options.onEnd();
    this.#ending.abort(new BrokerError('CLOSED', 'nobody listens'));
  }
}
