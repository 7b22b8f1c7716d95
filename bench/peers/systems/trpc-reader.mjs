import { tracked } from '@trpc/server';
import { connect, keyOf, streamPublisher } from '../lib/streams.mjs';
import { Input, init, mine, revive, serveWs } from '../lib/trpc.mjs';
import { trpcWs } from '../lib/trpc-wire.mjs';

const PAGE_COUNT = 1_000;

/** Stock tRPC as people write it first: each subscription has a connection of its own, and blocks on it. */
export const system = {
  start(redisUrl, options) {
    const t = init(options);
    const router = t.router({
      orders: t.procedure.input(Input).subscription(async function* ({ input, ctx, signal }) {
        const key = keyOf(input.topic);
        const redis = connect(redisUrl);
        const envelope = ([id, [, text]]) => {
          let data = JSON.parse(text);
          if (options.superjson) data = revive(data);
          return tracked(id, options.map ? mine(data, ctx.user) : data);
        };
        signal.addEventListener('abort', () => redis.disconnect(), { once: true });
        try {
          let last = input.lastEventId;
          for (let atEnd = !last; !atEnd; ) {
            const rows = await redis.xrange(key, `(${last}`, '+', 'COUNT', PAGE_COUNT);
            for (const row of rows) yield envelope(row);
            last = rows.at(-1)?.[0] ?? last;
            atEnd = rows.length < PAGE_COUNT;
          }
          last ||= '$';
          while (!signal.aborted) {
            const reply = await redis.xread('BLOCK', 0, 'STREAMS', key, last);
            for (const row of reply?.[0]?.[1] ?? []) {
              last = row[0];
              yield envelope(row);
            }
          }
        } catch (error) {
          if (!signal.aborted) throw error;
        } finally {
          redis.disconnect();
        }
      }),
    });
    return serveWs(router);
  },
  publisher: streamPublisher,
  wire: trpcWs,
};
