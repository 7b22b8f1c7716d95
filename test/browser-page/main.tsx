/**
 * A page with one feed, through `@trpc/react-query`. Its address says how: `?transport=ws|sse`, `feed=plain|healed` (whether the
 * server has an `onGap`), `onGap=restart|error` (the client's policy).
 */
import { feedLink, isFeedControl, sessionStore } from '@brokerfeed/client';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createWSClient, httpSubscriptionLink, wsLink } from '@trpc/client';
import { createTRPCReact } from '@trpc/react-query';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import type { NumbersRouter } from '../support/numbers-router.ts';
import { type Seen, SeenLog } from './seen.ts';

declare global {
  interface Window {
    seen: SeenLog;
    /** Ends all that goes on in the page. */
    leave(): void;
  }
}

/** How soon a client comes back, in milliseconds: the defaults only make tests slow. */
const RETRY_MS = 50;

const asked = new URLSearchParams(location.search);
const seen = new SeenLog();
window.seen = seen;

const url = new URL('/trpc', location.href).href;
const connectionParams = () => ({ session: sessionStorage.getItem('session') ?? 'first' });
const socket =
  asked.get('transport') === 'ws'
    ? createWSClient({
        url: url.replace('http', 'ws'),
        connectionParams,
        retryDelayMs: () => RETRY_MS,
      })
    : undefined;
const trpc = createTRPCReact<NumbersRouter>();
const client = trpc.createClient({
  links: [
    feedLink({
      store: sessionStore(),
      onGap: asked.get('onGap') === 'error' ? 'error' : 'restart',
      retry: { baseMs: RETRY_MS, maxMs: 4 * RETRY_MS },
      onFeedState: (state) =>
        seen.note({ states: [state.state === 'gap' ? `gap ${state.reason}` : state.state] }),
    }),
    socket === undefined
      ? httpSubscriptionLink({ url, connectionParams })
      : wsLink({ client: socket }),
  ],
});

function Numbers() {
  const [values, setValues] = useState<Seen['values']>([]);
  const procedure = asked.get('feed') === 'healed' ? trpc.healed : trpc.plain;
  const feed = procedure.useSubscription(undefined, {
    onData({ data }) {
      if (isFeedControl(data)) return;
      seen.note({ values: [data] });
      setValues((all) => [...all, data]);
    },
    onError: (error) => seen.note({ errors: [error.data?.httpStatus ?? 0] }),
  });

  async function signIn(): Promise<void> {
    sessionStorage.setItem('session', 'second');
    // Over WebSockets a refused session belongs to the connection.
    await socket?.close();
    feed.reset();
  }

  return (
    <>
      <p role="status">{feed.status}</p>
      <button type="button" onClick={() => void signIn()}>
        Sign in
      </button>
      <ul>
        {values.map((value, index) => (
          <li key={index}>{JSON.stringify(value)}</li>
        ))}
      </ul>
    </>
  );
}

const queries = new QueryClient();
const root = createRoot(document.body.appendChild(document.createElement('div')));
root.render(
  <trpc.Provider client={client} queryClient={queries}>
    <QueryClientProvider client={queries}>
      <Numbers />
    </QueryClientProvider>
  </trpc.Provider>,
);

window.leave = () => {
  root.unmount();
  void socket?.close();
};
