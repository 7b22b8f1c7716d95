import { type Scenario, SMALL } from '../harness/scenario.ts';

const RATE = 1_000;

/** Entries that nobody waits for should cost a server nothing. */
export const noSubscribers: Scenario = {
  name: 'no-subscribers',
  title: '1,000 entries/s of 200 B to a topic that nobody subscribes to',
  systems: ['feed', 'trpc-shared', 'socketio', 'graphql', 'orpc'],
  barSystems: [],
  reference: 'trpc-shared',
  columns: [
    { metric: 'server', title: 'server % of a core' },
    { metric: 'redisUs', title: 'Redis µs/entry' },
  ],
  load: SMALL,
  async run(pair, sizes) {
    await pair.load.call('steady', { rate: RATE, seconds: 1 });
    const stop = await pair.startMeter();
    await pair.load.call('steady', { rate: RATE, seconds: sizes.steadySeconds });
    const { seconds, serverUs, redisUs, others } = await stop();
    return { server: serverUs / seconds / 1e4, redisUs: redisUs / seconds / RATE, others };
  },
};
