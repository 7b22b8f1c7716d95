import { brokerFeed } from '@brokerfeed/trpc';
import { tracked } from '@trpc/server';
import { observable } from '@trpc/server/observable';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

const CONNECTIONS = 6;
const FEEDS = 300;
const DECOYS = 300;
const TOPICS = 20;
const ROUNDS = 5;

/** A small random source, the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

test('among 600 subscriptions that start in any order, every feed gets what is its own and nothing after its stop', async () => {
  await using broker = observedBroker();
  const chance = random(7);
  /** Goes on in this microtask turn, a later one, or a later turn of the event loop. */
  const pause = async (): Promise<void> => {
    const many = Math.floor(chance() * 8);
    for (let turn = 0; turn < many; turn += 1) await null;
    if (chance() < 0.3) await new Promise(setImmediate);
  };
  const live = { generators: 0, observables: 0 };
  const who = z.object({ who: z.number() });
  const router = t.router({
    feed: t.procedure.input(who).subscription(
      brokerFeed(
        broker,
        async ({ input }) => {
          await pause();
          return `topic ${input.who % TOPICS}`;
        },
        { ...SIGNED, map: (value, _entry, { input }) => ({ who: input.who, value }) },
      ),
    ),
    shared: t.procedure.input(who).subscription(
      brokerFeed(
        broker,
        async ({ input }) => {
          await pause();
          return `topic ${input.who % TOPICS}`;
        },
        SIGNED,
      ),
    ),
    generator: t.procedure.input(who).subscription(async function* ({ input, signal }) {
      live.generators += 1;
      try {
        for (let n = 0; !signal?.aborted; n += 1) {
          await pause();
          await new Promise(setImmediate);
          yield tracked(`${input.who}-${n}`, { who: input.who, value: 'decoy' });
          // The rest of its life it waits, as most do.
          if (n === 2) await new Promise((resolve) => signal?.addEventListener('abort', resolve));
        }
      } finally {
        live.generators -= 1;
      }
    }),
    observable: t.procedure.input(who).subscription(({ input }) =>
      observable<unknown>((observer) => {
        live.observables += 1;
        observer.next({ who: input.who, value: 'decoy' });
        return () => {
          live.observables -= 1;
        };
      }),
    ),
  });
  await using server = await startWsServer(router);
  const clients = await Promise.all(
    Array.from({ length: CONNECTIONS }, () => RawClient.open(server.url)),
  );
  const calls = Array.from({ length: FEEDS + DECOYS }, (_, who) => ({
    who,
    path:
      who < FEEDS
        ? who % 2 === 0
          ? 'feed'
          : 'shared'
        : who % 2 === 0
          ? 'generator'
          : 'observable',
    client: clients[Math.floor(chance() * CONNECTIONS)] as RawClient,
    order: chance(),
  })).sort((a, b) => a.order - b.order);
  for (const { client, who, path } of calls) client.subscribe(who, path, { input: { who } });
  await broker.meter.attached(FEEDS);
  for (const { client, who } of calls) await client.started(who);

  for (let round = 0; round < ROUNDS; round += 1) {
    for (let topic = 0; topic < TOPICS; topic += 1) {
      await broker.log.append(`topic ${topic}`, `"${topic}/${round}"`);
    }
  }
  const feeds = calls.filter(({ who }) => who < FEEDS);
  for (const { client, who } of feeds) await client.take(who, ROUNDS);
  expect(broker.meter.of('brokerfeed.feed.pushed')).toBe(FEEDS);

  // Stops cross what is still appended.
  for (const [at, { client, who }] of calls.entries()) {
    client.stop(who);
    if (at % 10 === 0) await broker.log.append(`topic ${at % TOPICS}`, '"late"');
  }
  for (const { client, who } of calls) await client.stopped(who);
  await broker.untilReads(0);
  for (let topic = 0; topic < TOPICS; topic += 1) {
    await broker.log.append(`topic ${topic}`, '"too late"');
  }
  // Whatever would come now comes before the answers to these.
  for (const client of clients) {
    client.subscribe('last', 'observable', { input: { who: -1 } });
    await client.started('last');
  }

  for (const { client, who, path } of calls) {
    const messages = client.of(who);
    expect(messages.at(0)?.result?.type).toBe('started');
    expect(messages.at(-1)?.result?.type).toBe('stopped');
    expect(messages.slice(1, -1).every(({ result }) => result?.type === 'data')).toBe(true);
    if (path === 'observable') {
      expect(messages[1]?.result?.data).toEqual({ who, value: 'decoy' });
      continue;
    }
    const values = client.values(who);
    const value = (round: number): string => `${who % TOPICS}/${round}`;
    const expected = Array.from({ length: ROUNDS }, (_, round) =>
      path === 'feed' ? { who, value: value(round) } : value(round),
    );
    if (path === 'generator') {
      expect(values).toEqual(Array(3).fill({ who, value: 'decoy' }));
    } else {
      expect(values.slice(0, ROUNDS)).toEqual(expected);
      const late = path === 'feed' ? { who, value: 'late' } : 'late';
      expect(values.slice(ROUNDS)).toEqual(values.slice(ROUNDS).map(() => late));
    }
  }
  const ids = clients.flatMap((client) => client.messages.map(({ id }) => id));
  expect(new Set(ids).size).toBe(FEEDS + DECOYS + 1);
  for (const client of clients) await client[Symbol.asyncDispose]();
  await expect.poll(() => live).toEqual({ generators: 0, observables: 0 });
  expect(broker.reads).toBe(0);
});
