import { tracked } from '@trpc/server';
import { StreamReaders, streamPublisher } from '../lib/streams.mjs';
import { Input, init, serveWs } from '../lib/trpc.mjs';
import { trpcWs } from '../lib/trpc-wire.mjs';

/** The least that a subscription can be: it remembers who waits, and drops what comes while nobody does. */
class BareIterator {
  #waiters;
  #resolve;

  constructor(waiters) {
    this.#waiters = waiters;
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  next() {
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#waiters.add(this);
    });
  }

  answer(value) {
    this.#resolve({ done: false, value });
  }

  async return() {
    this.#waiters.delete(this);
    this.#resolve?.({ done: true, value: undefined });
    return { done: true, value: undefined };
  }
}

/** What tRPC and its adapter hold for a subscription by themselves. For the memory bench: it loses what comes in bursts. */
export const system = {
  start(redisUrl, options) {
    const readers = new StreamReaders(redisUrl);
    const topics = new Map();
    const waitersOf = (topic) => {
      let waiters = topics.get(topic);
      if (waiters === undefined) {
        waiters = new Set();
        topics.set(topic, waiters);
        void readers.listen(topic, (entries) => {
          for (const { id, text } of entries) {
            const envelope = tracked(id, JSON.parse(text));
            const answered = [...waiters];
            waiters.clear();
            for (const waiter of answered) waiter.answer(envelope);
          }
        });
      }
      return waiters;
    };
    const t = init(options);
    const router = t.router({
      orders: t.procedure
        .input(Input)
        .subscription(({ input }) => new BareIterator(waitersOf(input.topic))),
    });
    return serveWs(router);
  },
  publisher: streamPublisher,
  wire: trpcWs,
};
