import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTRPCClient, httpLink } from '@trpc/client';
import { Redis } from 'ioredis';
import { describe, expect, inject, test } from 'vitest';
import { openBroker } from '../examples/graph/broker.ts';
import { GraphStore } from '../examples/graph/graph-store.ts';
import { type GraphFrame, Replica } from '../examples/graph/replica.ts';
import { type GraphRouter, TOPIC } from '../examples/graph/router.ts';
import { seed } from '../examples/graph/seed.ts';
import { startServer } from '../examples/graph/server.ts';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';
import { never, node, sorted } from './support/graph-world.ts';
import { SECRET } from './support/router.ts';

interface Place extends AsyncDisposable {
  readonly env: NodeJS.ProcessEnv;
}

const PLACES: Record<string, () => Promise<Place>> = {
  async journal() {
    const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-graph-'));
    return {
      env: { GRAPH_DIR: dir },
      [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
    };
  },
  async redis() {
    const url = inject('redisUrl');
    const prefix = `graph-${crypto.randomUUID()}`;
    return {
      env: { REDIS_URL: url, GRAPH_PREFIX: prefix },
      async [Symbol.asyncDispose]() {
        const client = new Redis(url);
        for await (const keys of client.scanStream({ match: `*${prefix}*` })) {
          if (keys.length > 0) await client.unlink(keys);
        }
        client.disconnect();
      },
    };
  },
};

describe.each(Object.keys(PLACES))('on %s', (name) => {
  test('a graph is made anew from its log, and a page goes on with nothing but frames', async () => {
    await using place = await (PLACES[name] as () => Promise<Place>)();
    let process = await start(place.env, 0);
    try {
      await seed(process.store);
      const { port } = process.server;
      const httpUrl = `http://127.0.0.1:${port}/trpc`;
      const { load } = createTRPCClient<GraphRouter>({ links: [httpLink({ url: httpUrl })] });
      await using client = connect<GraphRouter>({ httpUrl, wsUrl: '' }, 'sse');
      let loads = 0;
      const replica = new Replica(() => {
        loads += 1;
        return load.query();
      });
      const taken: Promise<void>[] = [];
      using feed = collect((on) =>
        client.trpc.feed.subscribe(undefined, {
          ...on,
          onData(frame) {
            taken.push(replica.receive(frame.data));
            on.onData(frame);
          },
        }),
      );
      await feed.take(1);
      await Promise.all(taken);
      await process.store.transact((write) => write.add(node('before', ['old'])));
      await process.store.saveDraft('before', 'nobody is told');
      await process.store.transact((write) => write.remove('ann'));
      await feed.until(({ values }) => changesIn(values).length === 4);
      const before = sorted(process.store.snapshot());

      await process.server.close();
      process = await start(place.env, port);
      expect(sorted(process.store.snapshot())).toEqual(before);
      expect(before.generation).toBe(4);
      const generation = await process.store.transact((write) => {
        write.add(node('after'));
        write.update('before', { note: 'told' });
      });
      expect(generation).toBe(5);
      await feed.until(({ values }) => changesIn(values).length === 6);
      expect(changesIn(feed.values)).toEqual([
        '2.0 entity add',
        '4.0 relation unrelate',
        '4.1 relation unrelate',
        '4.2 entity remove',
        '5.0 entity add',
        '5.1 entity update',
      ]);
      expect(sorted({ generation, ...rows(replica) })).toEqual(sorted(process.store.snapshot()));
      expect(loads).toBe(1);
    } finally {
      await process.server.close();
    }
  });
});

/** What the example does when it starts. */
async function start(env: NodeJS.ProcessEnv, port: number) {
  const broker = openBroker(env);
  const store = await GraphStore.open(broker, TOPIC, never);
  return { store, server: await startServer({ broker, store, secret: SECRET }, port) };
}

function changesIn(values: readonly unknown[]): string[] {
  return (values as GraphFrame[]).flatMap((frame) =>
    'kind' in frame ? [`${frame.generation}.${frame.index} ${frame.kind} ${frame.op}`] : [],
  );
}

function rows({ graph }: Replica) {
  return { entities: [...graph.entities.values()], relations: [...graph.relations.values()] };
}
