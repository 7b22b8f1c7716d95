import { setTimeout as sleep } from 'node:timers/promises';
import type { Pair } from '../harness/pair.ts';
import { peakMiB, resetPeak } from '../harness/proc.ts';
import { type Scenario, SMALL } from '../harness/scenario.ts';
import { account } from './saturating.ts';

/** Longer than anybody keeps what was read before, so that all start from nothing. */
const FORGET_MS = 6_000;

/** All clients come back at once, as after a restart of the server before theirs. */
export const herd: Scenario = {
  name: 'herd',
  title: 'a herd: 1,000 clients that each missed the same 1,000 entries of 200 B',
  systems: ['limit-batch', 'feed', 'feed-stock', 'socketio', 'orpc', 'trpc-shared', 'trpc-reader'],
  barSystems: ['limit-batch', 'feed'],
  reference: 'limit-batch',
  columns: [
    { metric: 'serverUs', title: 'server µs/delivery' },
    { metric: 'seconds', title: 's' },
    { metric: 'peakMiB', title: 'peak RSS MiB' },
    { metric: 'commands', title: 'Redis commands' },
    { metric: 'commandsFew', title: 'of 100 clients' },
  ],
  load: SMALL,
  async run(pair, sizes) {
    const { clients, few, entries } = sizes.herd;
    await pair.load.call('connect', { count: clients, topics: 1 });
    await pair.load.call('prime', undefined);
    await pair.load.call('miss', { entries });
    await sleep(FORGET_MS);
    const first = few > 0 ? await resume(pair, few) : undefined;
    if (first !== undefined) await sleep(FORGET_MS);
    const all = await resume(pair, clients);
    return {
      ...all,
      ...(first === undefined ? {} : { commandsFew: first.commands }),
      ...(await account(pair)),
      missing: all.missing + (first?.missing ?? 0),
    };
  },
};

async function resume(pair: Pair, clients: number) {
  await pair.server.call('memory', undefined);
  resetPeak(pair.server.pid);
  const before = await pair.redis.commands();
  const stop = await pair.startMeter();
  const { deliveries, expected, allMs } = await pair.load.call('resume', { clients });
  const { serverUs, others } = await stop();
  return {
    deliveries,
    missing: expected - deliveries,
    seconds: allMs / 1000,
    serverUs: serverUs / deliveries,
    peakMiB: peakMiB(pair.server.pid),
    commands: (await pair.redis.commands()) - before,
    others,
  };
}
