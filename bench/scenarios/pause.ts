import { setTimeout as sleep } from 'node:timers/promises';
import { type Scenario, SMALL } from '../harness/scenario.ts';
import { account, BURSTS } from './saturating.ts';

const LOOK_MS = 100;

/** How long the server answers nobody, at the worst. */
export const pause: Scenario = {
  name: 'pause',
  title: 'longest pause of the event loop over 3,000,000 deliveries, or as many as 30 s give',
  systems: ['limit-batch', 'feed', 'feed-stock', 'socketio', 'trpc-shared'],
  barSystems: ['feed', 'trpc-shared'],
  reference: 'limit-batch',
  columns: [
    { metric: 'pauseMs', title: 'ms' },
    { metric: 'gcMs', title: 'of it collecting, at most' },
    { metric: 'deliveries', title: 'deliveries' },
  ],
  load: SMALL,
  async run(pair, sizes) {
    await pair.load.call('connect', { count: sizes.sockets, topics: 1 });
    await pair.load.call('prime', undefined);
    await pair.load.call('saturate', BURSTS);
    await sleep(sizes.warmMs);
    await pair.server.call('watchPauses', undefined);
    const stop = await pair.startMeter();
    const { deliveries: before } = await pair.load.call('tally', undefined);
    const deadline = performance.now() + sizes.pause.limitMs;
    for (let made = 0; made < sizes.pause.deliveries && performance.now() < deadline; ) {
      await sleep(LOOK_MS);
      made = (await pair.load.call('tally', undefined)).deliveries - before;
    }
    const { pauseMs, gcMs } = await pair.server.call('longestPause', undefined);
    const { deliveries, others } = await stop();
    const { missing } = await pair.load.call('stop', undefined);
    return { pauseMs, gcMs, deliveries, others, ...(await account(pair)), missing };
  },
};
