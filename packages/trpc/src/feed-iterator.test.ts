import { type FeedFrame, type FeedReader, FeedRefusal } from '@brokerfeed/core';
import { tracked } from '@trpc/server';
import { expect, test } from 'vitest';
import { FeedError } from './feed-error.ts';
import { FeedIterator } from './feed-iterator.ts';
import { makeOffer, type PushOffer } from './push-offer.ts';
import { turnstile } from './turnstile.ts';

type Handed = FeedFrame | Error | undefined;

/** A reader whose frames come when the test says so. */
class HandReader implements FeedReader {
  closes = 0;
  readonly #frames: Handed[] = [];
  #wake: (() => void) | undefined;

  async next(): Promise<FeedFrame | undefined> {
    while (this.#frames.length === 0 && this.closes === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    const frame = this.#frames.shift();
    if (frame instanceof Error) throw frame;
    return frame;
  }

  push(): Promise<void> {
    return Promise.reject(new Error('nobody pushes here'));
  }

  close(): void {
    this.closes += 1;
    this.#wake?.();
  }

  hand(frame: Handed): void {
    this.#frames.push(frame);
    this.#wake?.();
  }
}

test('return() settles a pending next() and closes the reader', async () => {
  const reader = new HandReader();
  const iterator = new FeedIterator(reader);
  const pending = iterator.next();
  await expect(iterator.return()).resolves.toEqual({ done: true, value: undefined });
  await expect(pending).resolves.toEqual({ done: true, value: undefined });
  expect(reader.closes).toBeGreaterThan(0);
});

test('a frame that arrives in the turn of return() is not delivered', async () => {
  const reader = new HandReader();
  const iterator = new FeedIterator(reader);
  const pending = iterator.next();
  reader.hand({ token: 'a', value: 1 });
  await iterator.return();
  await expect(pending).resolves.toEqual({ done: true, value: undefined });
});

test('return() and throw() before the first next() close the reader', async () => {
  const returned = new HandReader();
  await new FeedIterator(returned).return();
  expect(returned.closes).toBe(1);
  const thrown = new HandReader();
  const error = new Error('enough');
  await expect(new FeedIterator(thrown).throw(error)).rejects.toBe(error);
  expect(thrown.closes).toBe(1);
});

test('next() after the end answers done and asks the reader no more', async () => {
  const reader = new HandReader();
  const iterator = new FeedIterator(reader);
  await iterator.return();
  await expect(iterator.next()).resolves.toEqual({ done: true, value: undefined });
});

test('a refusal becomes a FeedError, closes the reader, and ends the iteration', async () => {
  const reader = new HandReader();
  const iterator = new FeedIterator(reader);
  const pending = iterator.next();
  reader.hand(new FeedRefusal('trimmed'));
  await expect(pending).rejects.toMatchObject({ reason: 'trimmed', httpStatus: 410 });
  await expect(pending).rejects.toBeInstanceOf(FeedError);
  expect(reader.closes).toBe(1);
  await expect(iterator.next()).resolves.toEqual({ done: true, value: undefined });
});

test('an error of user code passes through as it is', async () => {
  const reader = new HandReader();
  const iterator = new FeedIterator(reader);
  const pending = iterator.next();
  const error = new Error('no database');
  reader.hand(error);
  await expect(pending).rejects.toBe(error);
  expect(reader.closes).toBe(1);
});

test('a second iteration throws', () => {
  const iterator = new FeedIterator(new HandReader());
  iterator[Symbol.asyncIterator]();
  expect(() => iterator[Symbol.asyncIterator]()).toThrow(/iterated once/);
});

test('a value that the user tracked is delivered under the token of the feed', async () => {
  const reader = new HandReader();
  const iterator = new FeedIterator(reader);
  const pending = iterator.next();
  reader.hand({ token: 'feed', value: tracked('own', 7) });
  await expect(pending).resolves.toEqual({ done: false, value: tracked('feed', 7) });
});

test('the iterator can be given a disposer', () => {
  const iterator = new FeedIterator(new HandReader());
  expect(Object.isExtensible(iterator)).toBe(true);
});

/** A connection that is full until it is drained, and that nothing is ever pushed to. */
class FullConnection implements PushOffer {
  #waiting: (() => void)[] = [];
  #full = true;

  watch(): () => boolean {
    return () => false;
  }

  push(): Promise<void> {
    return Promise.reject(new Error('nobody pushes here'));
  }

  isFull(): boolean {
    return this.#full;
  }

  whenWritable(callback: () => void): void {
    this.#waiting.push(callback);
  }

  drain(): void {
    this.#full = false;
    for (const callback of this.#waiting.splice(0)) callback();
  }
}

const serializer = { serialize: (data: unknown) => data };

/** Has a feed iterated in the turn in which a connection is offered. */
function offered(reader: HandReader, signal: AbortSignal): [FeedIterator<unknown>, FullConnection] {
  const connection = new FullConnection();
  makeOffer(connection);
  const iterator = new FeedIterator<unknown>(reader, { signal, serializer });
  iterator[Symbol.asyncIterator]();
  return [iterator, connection];
}

test('next() waits while the connection is full', async () => {
  const reader = new HandReader();
  reader.hand({ token: 'a', value: 1 });
  const [iterator, connection] = offered(reader, new AbortController().signal);
  let settled = false;
  const pending = iterator.next().finally(() => {
    settled = true;
  });
  await new Promise(setImmediate);
  expect(settled).toBe(false);
  connection.drain();
  await expect(pending).resolves.toEqual({ done: false, value: tracked('a', 1) });
});

test('next() waits no longer for a full connection than until the subscription ends', async () => {
  const reader = new HandReader();
  const abort = new AbortController();
  const [iterator] = offered(reader, abort.signal);
  const pending = iterator.next();
  abort.abort();
  reader.close();
  await expect(pending).resolves.toEqual({ done: true, value: undefined });
});

/** Lets others through the turnstile until it lets nobody through any more in this turn. */
function crowd(): void {
  while (turnstile.pass() === undefined);
}

test('a frame waits for its turn', async () => {
  const reader = new HandReader();
  const iterator = new FeedIterator(reader);
  let settled = false;
  const pending = iterator.next().finally(() => {
    settled = true;
  });
  crowd();
  reader.hand({ token: 'a', value: 1 });
  for (let turn = 0; turn < 20; turn += 1) await null;
  expect(settled).toBe(false);
  await expect(pending).resolves.toEqual({ done: false, value: tracked('a', 1) });
});

test('an offer is for the turn in which it was made', async () => {
  const reader = new HandReader();
  reader.hand({ token: 'a', value: 1 });
  makeOffer(new FullConnection());
  await null;
  const signal = new AbortController().signal;
  const iterator = new FeedIterator<unknown>(reader, { signal, serializer });
  iterator[Symbol.asyncIterator]();
  await expect(iterator.next()).resolves.toMatchObject({ done: false });
});

test('intact() tells a feed as it was made from all that stands in its place', () => {
  const made = (): FeedIterator<unknown> => new FeedIterator<unknown>(new HandReader());
  const feed = made();
  expect(FeedIterator.intact(feed)).toBe(feed);
  class Other extends FeedIterator<unknown> {}
  const patched = Object.assign(made(), { next: () => Promise.reject(new Error('patched')) });
  const others = [
    new Other(new HandReader()),
    new Proxy(feed, {}),
    Object.create(feed),
    patched,
    undefined,
    null,
    'feed',
    {},
  ];
  for (const other of others) expect(FeedIterator.intact(other)).toBeUndefined();
});
