import { type Scenario, SMALL } from '../harness/scenario.ts';
import { account, perDelivery } from './saturating.ts';

const RATE = 100;
const WARM_RATE = 50;
const WARM_SECONDS = 2;

/** How long an entry takes at a rate that every system sustains. */
export const latency: Scenario = {
  name: 'latency',
  title: 'latency at 100 entries/s to 200 sockets, 200 B, from the publishing call to the frame',
  systems: [
    'limit-string',
    'feed',
    'feed-stock',
    'socketio',
    'orpc',
    'graphql',
    'trpc-shared',
    'trpc-reader',
  ],
  barSystems: ['limit-string', 'feed'],
  reference: 'limit-string',
  columns: [
    { metric: 'p99', title: 'p99 ms' },
    { metric: 'p50', title: 'p50 ms' },
    { metric: 'serverUs', title: 'server µs/delivery' },
  ],
  load: SMALL,
  async run(pair, sizes) {
    await pair.load.call('connect', { count: sizes.latencySockets, topics: 1 });
    await pair.load.call('prime', undefined);
    await pair.load.call('steady', { rate: WARM_RATE, seconds: WARM_SECONDS });
    const stop = await pair.startMeter();
    const { count, expected, p50, p99, max } = await pair.load.call('steady', {
      rate: RATE,
      seconds: sizes.steadySeconds,
    });
    const usage = await stop();
    const missing = expected - count;
    return { ...perDelivery(usage), p50, p99, max, ...(await account(pair)), missing };
  },
};
