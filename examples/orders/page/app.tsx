import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { BoardClient } from './board-client.ts';
import { ClientPanel } from './client-panel.tsx';
import { Controls } from './controls.tsx';
import { TRPCProvider } from './trpc.ts';

/** Two clients in one page, each with everything of its own, so that they can be compared. */
const CLIENTS = [new BoardClient('A', 'ws'), new BoardClient('B', 'sse')].map((client) => ({
  client,
  queries: new QueryClient(),
}));

export function App() {
  return (
    <>
      <header className="top">
        <div>
          <h1>Orders</h1>
          <p>
            Two clients follow one feed. Cut one off, or kill the server: both go on after the last
            order they got.
          </p>
        </div>
        <Controls />
      </header>
      <main>
        {CLIENTS.map(({ client, queries }) => (
          <QueryClientProvider key={client.name} client={queries}>
            <TRPCProvider trpcClient={client.trpc} queryClient={queries}>
              <ClientPanel client={client} />
            </TRPCProvider>
          </QueryClientProvider>
        ))}
      </main>
    </>
  );
}
