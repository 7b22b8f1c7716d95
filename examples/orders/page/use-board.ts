import { isFeedControl } from '@brokerfeed/client';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useSubscription } from '@trpc/tanstack-react-query';
import { useEffect, useState } from 'react';
import type { Order } from '../router.ts';
import type { BoardClient } from './board-client.ts';
import { type Counts, Tally } from './tally.ts';
import { useTRPC } from './trpc.ts';
import { type FeedLog, useFeedLog } from './use-feed-log.ts';

/** Orders that the board shows. */
const SHOWN = 60;

export interface Board {
  /** The newest first. */
  readonly orders: readonly Order[];
  readonly counts: Counts;
  readonly log: FeedLog;
  readonly connection: 'idle' | 'connecting' | 'pending' | 'error';
  /** Subscribes again, on the transport that the client is set to. The store's token makes it go on. */
  resubscribe(): void;
}

/**
 * The board of one client: what the database had when the feed stood, with what came since. A snapshot takes the place of the
 * first; orders that are in both are one.
 */
export function useBoard(client: BoardClient): Board {
  const trpc = useTRPC();
  const queries = useQueryClient();
  const log = useFeedLog(client);
  const [tally] = useState(() => new Tally(sessionStorage, `orders:${client.name}:tally`));
  const [counts, setCounts] = useState(tally.counts);
  const [live, setLive] = useState<readonly Order[]>([]);

  const recent = useQuery(
    trpc.orders.recent.queryOptions(undefined, {
      enabled: log.standing === 'live',
      staleTime: Number.POSITIVE_INFINITY,
    }),
  );
  const feed = useSubscription(
    trpc.orders.feed.subscriptionOptions(undefined, {
      // Not `data` of the hook: that is the newest value of a render, and a render may be of many.
      onData({ data }) {
        if (isFeedControl(data)) return;
        if ('snapshot' in data) {
          tally.takeSnapshot(data.snapshot);
          queries.setQueryData(trpc.orders.recent.queryKey(), data.snapshot);
          setLive([]);
        } else {
          tally.take(data);
          setLive((orders) => [...orders, data].slice(-SHOWN));
        }
        setCounts(tally.counts);
      },
    }),
  );

  useEffect(() => {
    const keep = (): void => tally.keep();
    window.addEventListener('pagehide', keep);
    return () => window.removeEventListener('pagehide', keep);
  }, [tally]);

  return {
    orders: newestFirst([...(recent.data ?? []), ...live]),
    counts,
    log,
    connection: feed.status,
    resubscribe: feed.reset,
  };
}

/** Leaves one of each order, and turns them round. */
function newestFirst(all: readonly Order[]): Order[] {
  const orders = new Map(all.map((order) => [order.id, order]));
  return [...orders.values()].slice(-SHOWN).reverse();
}
