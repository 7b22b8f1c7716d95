import { type Scenario, SMALL } from '../harness/scenario.ts';
import { BURSTS, SATURATING_COLUMNS, saturate } from './saturating.ts';

/** Each subscriber's value is its own: nothing that is encoded can be shared. */
export const mapped: Scenario = {
  name: 'mapped',
  title: 'mapped feed, saturating: a value of its own for each of 1,000 sockets, 200 B',
  systems: ['feed', 'feed-stock', 'trpc-shared', 'trpc-reader'],
  barSystems: ['feed', 'trpc-shared'],
  reference: 'feed',
  columns: SATURATING_COLUMNS,
  load: SMALL,
  options: { map: true },
  run: (pair, sizes) => saturate(pair, sizes, sizes.sockets, BURSTS),
};
