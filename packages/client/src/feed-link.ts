import type { TRPCLink } from '@trpc/client';
import type { AnyTRPCRouter } from '@trpc/server';
import { observable } from '@trpc/server/observable';
import { type FeedLinkOptions, resolveOptions } from './feed-options.ts';
import { FeedSubscriber } from './feed-subscriber.ts';
import { TokenKeeper } from './kept-token.ts';

/**
 * Makes a tRPC link for feeds. It stands in the chain before `wsLink`, `httpSubscriptionLink` or the `splitLink` between
 * them. It drops repeats, hides control frames, starts afresh after a gap, tries again after an outage, and keeps tokens
 * in a store. A feed is known by the ids of its frames; queries, mutations and other subscriptions pass untouched.
 *
 * Throws a `TypeError` or `RangeError` for an option that is none.
 */
export function feedLink<Router extends AnyTRPCRouter>(
  options: FeedLinkOptions = {},
): TRPCLink<Router> {
  const resolved = resolveOptions(options);
  const keeper = resolved.store && new TokenKeeper(resolved.store, resolved.clock);
  return () =>
    ({ op, next }) =>
      op.type === 'subscription'
        ? observable((observer) => {
            const subscriber = new FeedSubscriber(
              op,
              next,
              observer,
              resolved,
              keeper?.open(op.path, op.input),
            );
            subscriber.start();
            return () => subscriber.close();
          })
        : next(op);
}
