import { type Scenario, SMALL } from '../harness/scenario.ts';
import { BURSTS, SATURATING_COLUMNS, saturate } from './saturating.ts';

/** Fan-out over server-sent events. */
export const sse: Scenario = {
  name: 'sse',
  title: 'server-sent events, saturating: one topic, 300 connections, 200 B',
  systems: ['limit-sse', 'feed-sse', 'feed-stock-sse', 'trpc-shared-sse'],
  barSystems: ['feed-sse', 'trpc-shared-sse'],
  reference: 'limit-sse',
  columns: SATURATING_COLUMNS,
  load: SMALL,
  run: (pair, sizes) => saturate(pair, sizes, sizes.streams, BURSTS),
};
