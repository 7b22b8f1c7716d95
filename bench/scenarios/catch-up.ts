import { setTimeout as sleep } from 'node:timers/promises';
import { type Scenario, SMALL } from '../harness/scenario.ts';
import { median } from '../harness/stats.ts';
import { account } from './saturating.ts';

/** Longer than anybody keeps the pages of the round before. */
const FORGET_MS = 2_500;

/** One client that was away comes back, again and again to the same server: the first time is cold. */
export const catchUp: Scenario = {
  name: 'catch-up',
  title: 'one client catches up on 10,000 entries of 200 B',
  systems: ['limit-batch', 'feed', 'feed-stock', 'socketio', 'orpc', 'trpc-shared', 'trpc-reader'],
  barSystems: ['limit-batch', 'feed'],
  reference: 'limit-batch',
  columns: [
    { metric: 'ms', title: 'ms' },
    { metric: 'serverMs', title: 'server CPU ms' },
    { metric: 'coldMs', title: 'ms, cold' },
    { metric: 'commands', title: 'Redis commands' },
  ],
  load: SMALL,
  async run(pair, sizes) {
    await pair.load.call('connect', { count: 1, topics: 1 });
    await pair.load.call('prime', undefined);
    await pair.load.call('miss', { entries: sizes.catchUp.entries });
    const ms: number[] = [];
    const serverMs: number[] = [];
    const commands: number[] = [];
    const others: number[] = [];
    let missing = 0;
    for (let round = 0; round < sizes.catchUp.rounds; round += 1) {
      await sleep(FORGET_MS);
      const before = await pair.redis.commands();
      const stop = await pair.startMeter();
      const { deliveries, expected, allMs } = await pair.load.call('resume', { clients: 1 });
      const usage = await stop();
      ms.push(allMs);
      serverMs.push(usage.serverUs / 1000);
      commands.push((await pair.redis.commands()) - before);
      others.push(usage.others);
      missing += expected - deliveries;
    }
    return {
      ms: median(ms.slice(1)),
      serverMs: median(serverMs.slice(1)),
      coldMs: ms[0] ?? Number.NaN,
      commands: median(commands),
      others: median(others),
      ...(await account(pair)),
      missing,
    };
  },
};
