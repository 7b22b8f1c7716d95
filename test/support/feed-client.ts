import { type FeedLinkOptions, type FeedState, type FeedStore, feedLink } from '@brokerfeed/client';
import type { AnyTRPCRouter } from '@trpc/server';
import { connect, type TestClient, type Transport } from './client.ts';
import { Moments } from './moments.ts';
import type { TestServer } from './server.ts';

/** The longest first wait of a retry, in milliseconds: the default only makes tests slow. */
export const BASE_MS = 20;

/** The state of a feed that stands. */
export const ATTACHED = { state: 'attached' };

export interface FeedClient<Router extends AnyTRPCRouter> extends TestClient<Router> {
  readonly states: readonly FeedState[];
  /** The names of the states. */
  readonly told: readonly string[];
  untilTold(condition: (told: readonly string[]) => boolean): Promise<void>;
}

/** Connects a client with the link before the stock ones. */
export function connectFeeds<Router extends AnyTRPCRouter>(
  server: Pick<TestServer, 'httpUrl' | 'wsUrl'>,
  transport: Transport,
  options: FeedLinkOptions = {},
): FeedClient<Router> {
  const states: FeedState[] = [];
  const told: string[] = [];
  const moments = new Moments();
  const link = feedLink({
    retry: { baseMs: BASE_MS },
    onFeedState(state) {
      states.push(state);
      told.push(state.state);
      moments.tell();
    },
    ...options,
  });
  return {
    ...connect<Router>(server, transport, [link]),
    states,
    told,
    untilTold: (condition) =>
      moments.until(
        () => condition(told),
        () => `told: ${told.join(', ')}`,
      ),
  };
}

/** A store that holds one token, for whatever key. */
export interface KeptToken extends FeedStore {
  readonly token: string | undefined;
}

export function kept(token: string): KeptToken {
  let now: string | undefined = token;
  return {
    get: () => now,
    set: (_, next) => {
      now = next;
    },
    delete: () => {
      now = undefined;
    },
    get token() {
      return now;
    },
  };
}
