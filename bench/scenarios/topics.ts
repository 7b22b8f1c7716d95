import { type Scenario, SMALL } from '../harness/scenario.ts';
import { account } from './saturating.ts';

const RATE = 1_000;
const WARM_SECONDS = 2;

/** Nothing is shared between subscribers: each has a topic of its own. First all are silent, then each gets its turn. */
export const topics: Scenario = {
  name: 'topics',
  title: '1,000 topics with one subscriber each: idle, then at 1,000 entries/s of 200 B',
  systems: ['feed', 'socketio', 'graphql', 'orpc', 'trpc-shared', 'trpc-reader'],
  barSystems: ['feed', 'socketio', 'graphql', 'orpc', 'trpc-shared', 'trpc-reader'],
  reference: 'feed',
  columns: [
    { metric: 'serverUs', title: 'server µs/entry' },
    { metric: 'redisUs', title: 'Redis µs/entry' },
    { metric: 'p50', title: 'p50 ms' },
    { metric: 'p99', title: 'p99 ms' },
    { metric: 'connections', title: 'Redis connections' },
    { metric: 'idleServer', title: 'idle: server % of a core' },
    { metric: 'emptyServer', title: 'without subscribers' },
    { metric: 'idleRedis', title: 'idle: Redis %' },
    { metric: 'emptyRedis', title: 'without subscribers' },
  ],
  load: SMALL,
  async run(pair, sizes) {
    const empty = await pair.measure(sizes.idleMs / 2);
    const before = await pair.redis.connections();
    await pair.load.call('connect', { count: sizes.topics, topics: sizes.topics });
    const connections = (await pair.redis.connections()) - before + pair.firstConnections;
    await pair.load.call('steady', { rate: RATE, seconds: 1 });
    await pair.server.call('memory', undefined);
    const idle = await pair.measure(sizes.idleMs);
    await pair.load.call('steady', { rate: RATE, seconds: WARM_SECONDS });
    const stop = await pair.startMeter();
    const { count, expected, p50, p99 } = await pair.load.call('steady', {
      rate: RATE,
      seconds: sizes.steadySeconds,
    });
    const usage = await stop();
    return {
      serverUs: usage.serverUs / count,
      redisUs: usage.redisUs / count,
      p50,
      p99,
      connections,
      idleServer: percent(idle.serverUs, idle.seconds),
      emptyServer: percent(empty.serverUs, empty.seconds),
      idleRedis: percent(idle.redisUs, idle.seconds),
      emptyRedis: percent(empty.redisUs, empty.seconds),
      others: usage.others,
      ...(await account(pair)),
      missing: expected - count,
    };
  },
};

/** A share of one core. */
function percent(us: number, seconds: number): number {
  return us / seconds / 1e4;
}
