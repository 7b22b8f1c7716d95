import { type Scenario, SMALL } from '../harness/scenario.ts';
import { BURSTS, SATURATING_COLUMNS, saturate } from './saturating.ts';

/** One topic to very many, as fast as it goes. */
export const fanOut: Scenario = {
  name: 'fan-out',
  title: 'saturating fan-out: one topic, 1,000 sockets, 200 B',
  systems: [
    'limit-batch',
    'limit-frame',
    'limit-string',
    'feed',
    'feed-stock',
    'socketio',
    'orpc',
    'graphql',
    'trpc-shared',
    'trpc-reader',
  ],
  barSystems: ['limit-batch', 'feed', 'feed-stock', 'socketio', 'trpc-shared', 'trpc-reader'],
  reference: 'limit-batch',
  columns: SATURATING_COLUMNS,
  load: SMALL,
  run: (pair, sizes) => saturate(pair, sizes, sizes.sockets, BURSTS),
};
