import { initTRPC, TRPCError } from '@trpc/server';

/** What is open, by context: a WebSocket has one for as long as it lives. */
const open = new WeakMap<object, Set<AbortSignal>>();

/** For `t.procedure.concat(limitSubscriptions(256))`: what a client opens beyond that is refused with a 429. */
export function limitSubscriptions(max: number) {
  const { procedure } = initTRPC.context<object>().create();
  return procedure.use(async ({ ctx, type, signal, next }) => {
    if (type !== 'subscription' || signal === undefined) return next();
    const mine = open.get(ctx) ?? new Set();
    if (mine.size >= max) throw new TRPCError({ code: 'TOO_MANY_REQUESTS' });
    open.set(ctx, mine.add(signal));
    signal.addEventListener('abort', () => mine.delete(signal));
    const result = await next();
    // What is refused is not open, and its signal does not always say so.
    if (!result.ok) mine.delete(signal);
    return result;
  });
}
