import { integerOption } from '@brokerfeed/core';
import type { AnyTRPCRouter } from '@trpc/server';
import type { TRPCRequestInfo } from '@trpc/server/http';
import { Drain, type Drainable } from '../drain.ts';
import { FeedIterator } from '../feed-iterator.ts';
import { DrainStream } from './drain-stream.ts';
import { EventStream } from './event-stream.ts';
import { isGone, nodeResponse } from './node-response.ts';
import { sseEncoder } from './sse-encoder.ts';

/** Options of {@link withFeeds}. */
export interface SseFeedsOptions {
  /**
   * A subscription pauses while its response holds more than this, in bytes, and catches up once it has drained.
   * @default 1048576 (1 MiB)
   */
  readonly maxBufferedBytes?: number;
}

/** What tRPC's Node adapters call `createContext` with. */
interface Call {
  readonly info: TRPCRequestInfo;
  readonly res: unknown;
}

/**
 * Makes the feeds of an HTTP handler cheap over SSE, and safe for slow readers. It goes around the options of whichever
 * of tRPC's adapters has a Node response:
 *
 * ```ts
 * createHTTPHandler(withFeeds({ router, createContext }));                                // standalone, HTTP/1 and 2
 * app.use('/trpc', createExpressMiddleware(withFeeds({ router, createContext })));         // Express
 * app.register(fastifyTRPCPlugin, { trpcOptions: withFeeds({ router, createContext }) });  // Fastify
 * ```
 *
 * Events are encoded once for all subscribers that get the same, written together, and held back from a response that
 * does not drain. It changes nothing that a client can see: tRPC stays in charge of context, headers, errors, pings and
 * the end, and of all that is no feed. Where its handler has called a procedure and was answered with a feed itself, the
 * feed writes its events between tRPC's own, while tRPC waits for the first value. A feed behind a wrapper (a validator,
 * `.errors()`, a generator of yours), or whose response does not begin as tRPC's do (something else changes its bytes),
 * goes through tRPC's stream as ever.
 *
 * Pings keep their own beat, also while events flow.
 *
 * What it answers can also move the clients of all subscriptions elsewhere before a deploy: see {@link Drainable.drain}.
 *
 * Throws `OPTION_INVALID`.
 */
export function withFeeds<Options extends { readonly router: AnyTRPCRouter }>(
  options: Options,
  feeds: SseFeedsOptions = {},
): Options & Drainable {
  const maxBufferedBytes = integerOption(
    'maxBufferedBytes',
    feeds.maxBufferedBytes,
    1024 * 1024,
    1,
  );
  const drain = new Drain();
  // Each adapter types what it gives to `createContext` in its own way; all give at least a `Call`.
  const given = options as { readonly createContext?: (call: Call) => unknown };
  const createContext = async (call: Call): Promise<unknown> => {
    const context = await given.createContext?.(call);
    takeResponse(options.router, call, maxBufferedBytes, drain);
    return context;
  };
  return { ...options, createContext, drain: (how) => drain.drain(how) };
}

/** Stands in for the procedure that is about to be called, to see what it answers tRPC with, after all its middlewares. */
function takeResponse(
  router: AnyTRPCRouter,
  { info, res }: Call,
  maxBufferedBytes: number,
  drain: Drain,
): void {
  const [call] = info.calls;
  const { transformer, sse } = router._def._config;
  const response = nodeResponse(res);
  if (info.type !== 'subscription' || !call?.procedure || response === undefined) return;
  // Its client may have left while the context was made.
  if (isGone(response)) return;
  const member = new DrainStream(response);
  response.on('close', () => drain.delete(member));
  drain.add(member);
  // It would wait for a value to come by, to end the response after it.
  const mayPush = !sse?.emitAndEndImmediately;
  const encoder = sseEncoder(transformer.output);
  const procedure = new Proxy(call.procedure, {
    async apply(target, self, [options]: [{ readonly signal: AbortSignal }]) {
      const signal = member.signalBeside(options.signal);
      const answer: unknown = await Reflect.apply(target, self, [{ ...options, signal }]);
      if (mayPush) {
        const feed = FeedIterator.intact(answer);
        feed?.pushTo(new EventStream(response, encoder, maxBufferedBytes).opened);
      }
      return answer;
    },
  });
  // Not an assignment, which would throw if it were read-only one day: then feeds are pulled.
  Reflect.set(call, 'procedure', procedure);
}
