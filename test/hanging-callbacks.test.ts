import { brokerFeed, watchFeed } from '@brokerfeed/trpc';
import { expect, test } from 'vitest';
import { startInstance } from './support/instance.ts';
import { observedBroker } from './support/observed.ts';
import { RawClient } from './support/raw-client.ts';
import { SIGNED, t } from './support/router.ts';
import { startServer } from './support/server.ts';

/** A callback of a user that looks at no signal, and never answers. */
const never = (): Promise<never> => new Promise(() => {});

test.each([
  ['pulled', startServer],
  ['pushed', startInstance],
])(
  '%s, a subscription that is stopped while a callback hangs is told so at once, and leaves no read behind',
  async (_, start) => {
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'orders', {
          ...SIGNED,
          map: (value) => (value === 1 ? value : never()),
        }),
      ),
      watch: t.procedure.subscription(watchFeed(broker, 'orders', { map: never, lingerMs: 0 })),
    });
    await using server = await start(router);
    await using client = await RawClient.open(server.wsUrl);
    for (const [id, path] of ['feed', 'watch'].entries()) {
      client.subscribe(id, path);
      await client.started(id);
    }
    await broker.log.append('orders', '1');
    await client.take(0, 1);
    await broker.log.append('orders', '2');
    for (const id of [0, 1]) {
      client.stop(id);
      await client.stopped(id);
    }
    await broker.untilReads(0);
    expect(client.values(0)).toEqual([1]);
  },
);
