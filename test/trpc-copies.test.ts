import { createRequire } from 'node:module';
import type * as server from '@trpc/server';
import { initTRPC } from '@trpc/server';
import type * as adapter from '@trpc/server/adapters/ws';
import { expect, test, vi } from 'vitest';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';
import { Moments } from './support/moments.ts';
import { observedBroker } from './support/observed.ts';
import { SIGNED } from './support/router.ts';
import { startWsServer } from './support/ws-server.ts';

const require = createRequire(import.meta.url);

/** The copy of tRPC that a CommonJS program has. */
const commonJs = {
  ...(require('@trpc/server') as typeof server),
  ...(require('@trpc/server/adapters/ws') as typeof adapter),
};

interface Warning extends Error {
  readonly code?: string;
}

/** Serves a feed to one client by a copy of tRPC, and answers what comes and what is warned of. */
async function served(copy: typeof initTRPC, apply?: typeof commonJs.applyWSSHandler) {
  // What is told once in a process has not been told yet.
  vi.resetModules();
  const { brokerFeed } = await import('@brokerfeed/trpc');
  const warnings: Warning[] = [];
  const moments = new Moments();
  const warned = (warning: Warning): void => {
    if (warning.code?.startsWith('BROKERFEED')) warnings.push(warning);
    moments.tell();
  };
  process.on('warning', warned);
  try {
    const t = copy.create();
    await using broker = observedBroker();
    const router = t.router({
      feed: t.procedure.subscription(brokerFeed(broker, 'orders', SIGNED)),
    });
    await using server = await startWsServer(router, {
      ...(apply && { apply: (wss) => apply({ wss, router }) }),
    });
    await using client = connect<typeof router>({ httpUrl: '', wsUrl: server.url }, 'ws');
    using feed = collect((on) => client.trpc.feed.subscribe(undefined, on));
    await feed.ready();
    await broker.log.append('orders', '1');
    await broker.log.append('orders', '2');
    const values = await feed.take(2);
    if (apply)
      await moments.until(
        () => warnings.length > 0,
        () => 'nothing was warned of',
      );
    return { values, warnings };
  } finally {
    process.off('warning', warned);
  }
}

test('a program that has another copy of tRPC than ours is told, since its clients cannot resume', async () => {
  const { warnings } = await served(commonJs.initTRPC, commonJs.applyWSSHandler);
  expect(warnings).toEqual([
    expect.objectContaining({
      code: 'BROKERFEED_TRPC_COPIES',
      message: expect.stringContaining('another copy of @trpc/server'),
    }),
  ]);
});

test('a program that has the same copy is told nothing', async () => {
  expect(await served(initTRPC)).toEqual({ values: [1, 2], warnings: [] });
});
