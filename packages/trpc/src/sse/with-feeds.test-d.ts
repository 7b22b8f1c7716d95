// Type tests, compiled by `tsc -p tsconfig.test.json`: options keep their types, and callbacks in them infer as without.
import { initTRPC } from '@trpc/server';
import {
  type CreateHTTPContextOptions,
  createHTTP2Handler,
  createHTTPHandler,
  createHTTPServer,
} from '@trpc/server/adapters/standalone';
import { type Drainable, withFeeds } from './index.ts';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void => {};

interface Context {
  readonly user: string;
}
const t = initTRPC.context<Context>().create();
const router = t.router({ ping: t.procedure.query(() => 'pong') });

createHTTPHandler(
  withFeeds({
    router,
    createContext: ({ req, res, info }) => {
      same<typeof req, CreateHTTPContextOptions['req']>();
      same<typeof res, CreateHTTPContextOptions['res']>();
      same<typeof info, CreateHTTPContextOptions['info']>();
      return { user: req.url ?? '' };
    },
    onError: ({ error, req }) => {
      same<typeof error.message, string>();
      same<typeof req, CreateHTTPContextOptions['req']>();
    },
    basePath: '/trpc/',
  }),
);

const createContext = ({ req }: CreateHTTPContextOptions): Context => ({ user: req.url ?? '' });
const options = withFeeds({ router, createContext }, { maxBufferedBytes: 65_536 });
same<typeof options, { router: typeof router; createContext: typeof createContext } & Drainable>();
createHTTPServer(options);

const open = initTRPC.create();
const openRouter = open.router({ ping: open.procedure.query(() => 'pong') });
createHTTPServer(withFeeds({ router: openRouter }));
createHTTP2Handler(withFeeds({ router: openRouter }));

// @ts-expect-error a router is what tells how values are transformed
withFeeds({ createContext });
// @ts-expect-error a context that the router does not have
createHTTPServer(withFeeds({ router, createContext: () => ({ user: 1 }) }));
// @ts-expect-error a required context is still required
createHTTPServer(withFeeds({ router }));
// @ts-expect-error an option of WebSockets
withFeeds({ router, createContext }, { slowReader: 'disconnect' });
