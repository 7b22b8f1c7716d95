import { EventEmitter, on } from 'node:events';
import { tracked } from '@trpc/server';
import { isAfter, StreamReaders, streamPublisher } from './streams.mjs';
import { Input, init, mine, revive, serveSse, serveWs } from './trpc.mjs';
import { trpcSse, trpcWs } from './trpc-wire.mjs';

/** Stock tRPC done with care: one reader for each topic, and a generator over an emitter, as tRPC's documentation has it. */
export function trpcShared(transport) {
  return {
    start(redisUrl, options) {
      const readers = new StreamReaders(redisUrl);
      const emitter = new EventEmitter();
      const counts = new Map();

      /** Has a topic's entries emitted while somebody is interested. */
      const acquire = async (topic) => {
        let shared = counts.get(topic);
        if (shared === undefined) {
          shared = { count: 0 };
          shared.release = readers.listen(topic, (entries) => {
            for (const { id, text } of entries) {
              const data = JSON.parse(text);
              emitter.emit(topic, { id, data: options.superjson ? revive(data) : data });
            }
          });
          counts.set(topic, shared);
        }
        shared.count += 1;
        await shared.release;
        return async () => {
          shared.count -= 1;
          if (shared.count > 0) return;
          if (counts.get(topic) === shared) counts.delete(topic);
          (await shared.release)();
        };
      };

      const t = init(options);
      const router = t.router({
        orders: t.procedure.input(Input).subscription(async function* ({ input, ctx, signal }) {
          const { topic, lastEventId } = input;
          const made = options.map ? (data) => mine(data, ctx.user) : (data) => data;
          const live = on(emitter, topic, { signal });
          const release = await acquire(topic);
          try {
            let last = lastEventId;
            for (let atEnd = !last; !atEnd; ) {
              const page = await readers.page(topic, last);
              for (const { id, text } of page.entries) {
                last = id;
                yield tracked(id, made(JSON.parse(text)));
              }
              atEnd = page.atEnd;
            }
            for await (const [{ id, data }] of live) {
              if (last && !isAfter(id, last)) continue;
              yield tracked(id, made(data));
            }
          } finally {
            await release();
          }
        }),
      });
      return transport === 'ws' ? serveWs(router) : serveSse(router);
    },
    publisher: streamPublisher,
    wire: transport === 'ws' ? trpcWs : trpcSse,
  };
}
