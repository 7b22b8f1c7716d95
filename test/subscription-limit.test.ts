import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { initTRPC } from '@trpc/server';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';
import { codeBlocks, readText, sectionOf } from './support/documents.ts';
import { startInstance } from './support/instance.ts';
import { limitSubscriptions } from './support/limit-subscriptions.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED } from './support/router.ts';

const MAX = 3;

test('the recipe is the code that is tested here', () => {
  const recipe = sectionOf(readText('docs/recipes.md'), '### How much one client may open');
  expect(readText('test/support/limit-subscriptions.ts')).toBe(codeBlocks(recipe, 'ts')[0]);
});

test('a socket has so many subscriptions and no more, whatever ends one makes room, and feeds are pushed as ever', async () => {
  await using broker = observedBroker();
  const t = initTRPC.context<{ user: string }>().create({ errorFormatter: withFeedErrors() });
  const router = t.router({
    feed: t.procedure
      .concat(limitSubscriptions(MAX))
      .input(z.object({ lastEventId: z.string().optional() }))
      .subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          onEntryError: 'end',
          decode: (text) => JSON.parse(text),
        }),
      ),
    place: t.procedure.concat(limitSubscriptions(MAX)).mutation(() => 'placed'),
  });
  await using server = await startInstance(router, {
    handler: { createContext: () => ({ user: 'ann' }) },
  });
  await using client = connect<typeof router>(server, 'ws');
  const open = (lastEventId?: string) =>
    collect((on) => client.trpc.feed.subscribe({ lastEventId }, on));
  const tooMany = { code: 'TOO_MANY_REQUESTS', httpStatus: 429 };

  // What is refused takes no place.
  for (let n = 0; n < 2 * MAX; n += 1) {
    using refused = open('garbage');
    expect(await refused.refusal()).toMatchObject({ httpStatus: 400 });
  }
  const feeds = [open(), open(), open()];
  for (const feed of feeds) await feed.ready();
  using fourth = open();
  expect(await fourth.refusal()).toMatchObject(tooMany);
  expect(await client.trpc.place.mutate()).toBe('placed');

  // Another socket is another client.
  await using other = connect<typeof router>(server, 'ws');
  using elsewhere = collect((on) => other.trpc.feed.subscribe({}, on));
  await elsewhere.ready();

  feeds.pop()?.unsubscribe();
  using fifth = open();
  await fifth.ready();
  await broker.log.append('orders', ['1', '2']);
  for (const feed of [...feeds, fifth, elsewhere]) expect(await feed.take(2)).toEqual([1, 2]);
  expect(broker.meter.of('brokerfeed.feed.pushed')).toBe(4);

  // Those that the server ends make room too.
  await broker.log.append('orders', 'no JSON');
  for (const feed of [...feeds, fifth]) {
    expect(await feed.refusal()).toMatchObject({ feed: { reason: 'entry' } });
  }
  const again = [open(), open(), open()];
  for (const feed of again) await feed.ready();
  using last = open();
  expect(await last.refusal()).toMatchObject(tooMany);
  for (const feed of again) feed.unsubscribe();
});
