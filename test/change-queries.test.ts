import { type Change, changes } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';
import { brokerFeed } from '@brokerfeed/trpc';
import { QueryClient, QueryObserver } from '@tanstack/react-query';
import { expect, test } from 'vitest';
import { connect, TRANSPORTS } from './support/client.ts';
import { collect } from './support/collector.ts';
import { startInstance } from './support/instance.ts';
import { Moments } from './support/moments.ts';
import { TestMeter } from './support/observed.ts';
import { SIGNED, t } from './support/router.ts';

test.each(TRANSPORTS)(
  'a change over %s has exactly the reads that depend on it run again, and without one nothing is asked',
  async (transport) => {
    const meter = new TestMeter();
    await using broker = memoryBroker({ meter });
    const store = changes(broker, 'graph');
    const router = t.router({
      feed: t.procedure.subscription(
        brokerFeed(broker, 'graph', { ...SIGNED, decode: store.decode }),
      ),
    });
    await using server = await startInstance(router);
    await using client = connect<typeof router>(server, transport);
    const queries = new QueryClient({ defaultOptions: { queries: { staleTime: Infinity } } });
    const asked: string[] = [];
    const moments = new Moments();
    const unsubscribers = [
      ['person', 'ann'],
      ['person', 'ben'],
      ['place', 'ann'],
    ].map((queryKey) =>
      new QueryObserver(queries, {
        queryKey,
        queryFn: () => {
          asked.push(queryKey.join(' '));
          moments.tell();
          return asked.length;
        },
      }).subscribe(() => moments.tell()),
    );
    const quiet = (count: number): Promise<void> =>
      moments.until(
        () => asked.length === count && queries.isFetching() === 0,
        () => `asked for ${asked.join(', ')}`,
      );
    await quiet(3);
    using feed = collect((on) =>
      client.trpc.feed.subscribe(undefined, {
        ...on,
        onData(frame) {
          const change = frame.data as Change;
          if (change.kind === 'entity') {
            const { type, id } = change.entity;
            void queries.invalidateQueries({ queryKey: [type, id] });
          }
          on.onData(frame);
        },
      }),
    );
    await meter.attached(1);
    expect(asked.splice(0)).toEqual(['person ann', 'person ben', 'place ann']);

    const write = (type: string, id: string): Promise<number> =>
      store.append([{ kind: 'entity', op: 'update', entity: { id, type, metadata: {} } }]);
    await write('person', 'ben');
    await feed.take(1);
    await quiet(1);
    await write('person', 'nobody looks');
    await store.append([], { retention: 'latest-only' });
    await write('place', 'ann');
    await feed.take(3);
    await quiet(2);
    expect(asked).toEqual(['person ben', 'place ann']);
    for (const unsubscribe of unsubscribers) unsubscribe();
    queries.clear();
  },
);
