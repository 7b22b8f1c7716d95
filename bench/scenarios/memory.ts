import { type Scenario, SMALL } from '../harness/scenario.ts';
import { account } from './saturating.ts';

/** So many come first, so that what is made once is made. */
const FIRST = 200;

/** What a subscriber holds that gets nothing, and after it has got one entry. Socket and tRPC's own part are in it. */
export const memory: Scenario = {
  name: 'memory',
  title: 'memory of an idle subscriber, with its socket: heap and buffers after a collection',
  systems: ['limit-string', 'trpc-bare', 'feed', 'feed-stock', 'trpc-shared', 'trpc-reader'],
  barSystems: ['trpc-bare', 'feed'],
  reference: 'trpc-bare',
  columns: [
    { metric: 'bytes', title: 'bytes' },
    { metric: 'bytesAfter', title: 'after its first entry' },
  ],
  load: SMALL,
  async run(pair, sizes) {
    const count = sizes.memorySubscribers;
    await pair.load.call('connect', { count: FIRST, topics: 1 });
    await pair.load.call('prime', undefined);
    const empty = await pair.server.call('memory', undefined);
    await pair.load.call('connect', { count: FIRST + count, topics: 1 });
    const fresh = await pair.server.call('memory', undefined);
    await pair.load.call('prime', undefined);
    const used = await pair.server.call('memory', undefined);
    return {
      bytes: (fresh - empty) / count,
      bytesAfter: (used - empty) / count,
      ...(await account(pair)),
    };
  },
};
