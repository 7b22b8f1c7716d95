import type { Scenario } from '../harness/scenario.ts';
import { BURSTS, SATURATING_COLUMNS, saturate } from './saturating.ts';

/** Rows with dates, through superjson. The limit sends the same text without any of that. */
function large(kilobytes: number): Scenario {
  return {
    name: `superjson-${kilobytes}k`,
    title: `superjson, saturating: one topic, 200 sockets, rows of ${kilobytes} KB with dates`,
    systems: ['limit-batch', 'feed', 'feed-stock', 'trpc-shared', 'trpc-reader'],
    barSystems: [],
    reference: 'limit-batch',
    columns: SATURATING_COLUMNS,
    load: { bytes: kilobytes * 1_000, shape: 'rows' },
    options: { superjson: true },
    run: (pair, sizes) => saturate(pair, sizes, sizes.fewSockets, BURSTS),
  };
}

export const superjson2k: Scenario = large(2);
export const superjson10k: Scenario = large(10);
