import { initTRPC } from '@trpc/server';
import { createHTTPHandler } from '@trpc/server/adapters/standalone';
import { applyWSSHandler } from '@trpc/server/adapters/ws';
import superjson from 'superjson';
import { z } from 'zod';
import { listen, listenWs } from './http.mjs';

/** What a topic's subscription takes. The superjson runs send an input without dates, which is what it is inside `json`. */
export const Input = z.object({ topic: z.string(), lastEventId: z.string().nullish() });

/** Starts tRPC: with the transformer that is asked for, and a context that differs between subscribers. */
export function init(options, more = {}) {
  return initTRPC.create({ ...(options.superjson ? { transformer: INPUT_AS_IS } : {}), ...more });
}

/** superjson for what is sent; the load client's input is plain. */
const INPUT_AS_IS = {
  input: { serialize: (value) => value, deserialize: (value) => value },
  output: superjson,
};

let users = 0;
export const createContext = () => {
  users += 1;
  return { user: `user-${users}` };
};

/** Makes of a value what one subscriber gets. */
export const mine = (value, user) => ({ ...value, user });

/** Makes dates of the texts that are dates. */
export function revive(value) {
  if (value.rows === undefined) return value;
  return { ...value, rows: value.rows.map((row) => ({ ...row, at: new Date(row.at) })) };
}

/** Serves a router over tRPC's own WebSocket adapter. `attach` sees the server first. */
export async function serveWs(router, attach = () => {}) {
  const { wss, url } = await listenWs();
  attach(wss);
  applyWSSHandler({ wss, router, createContext });
  return url;
}

/** Serves a router over tRPC's own HTTP adapter. `wrap` may change what that is given. */
export async function serveSse(router, wrap = (options) => options) {
  const { server, address } = await listen(createHTTPHandler(wrap({ router, createContext })));
  server.requestTimeout = 0;
  return `http://${address}`;
}
