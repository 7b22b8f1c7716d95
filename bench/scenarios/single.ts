import { type Scenario, SMALL } from '../harness/scenario.ts';
import { ONE_BY_ONE, SATURATING_COLUMNS, saturate } from './saturating.ts';

/** The same where nothing can be batched: the next entry is published when the last one has reached everybody. */
export const single: Scenario = {
  name: 'single',
  title: 'one entry at a time: one topic, 1,000 sockets, 200 B',
  systems: [
    'limit-frame',
    'limit-string',
    'feed',
    'feed-stock',
    'socketio',
    'orpc',
    'graphql',
    'trpc-shared',
  ],
  barSystems: ['limit-frame', 'feed'],
  reference: 'limit-frame',
  columns: SATURATING_COLUMNS,
  load: SMALL,
  run: (pair, sizes) => saturate(pair, sizes, sizes.sockets, ONE_BY_ONE),
};
