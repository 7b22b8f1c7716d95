import { redisBroker } from '@brokerfeed/redis';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { z } from 'zod';
import { connect } from './streams.mjs';
import { init, mine, revive } from './trpc.mjs';

/** The feed as its documentation has it: tokens signed, topics checked. */
export function feedRouter(redisUrl, options) {
  const broker = redisBroker({ client: connect(redisUrl) });
  const t = init(options, { errorFormatter: withFeedErrors() });
  return t.router({
    orders: t.procedure.input(z.object({ topic: z.string() })).subscription(
      brokerFeed(broker, ({ input }) => input.topic, {
        secret: 'a secret of the bench, of 16 bytes or more',
        ...(options.superjson ? { prepare: revive } : {}),
        ...(options.map ? { map: (value, _entry, { ctx }) => mine(value, ctx.user) } : {}),
      }),
    ),
  });
}

/** Appends as a user does. */
export function feedPublisher(redisUrl) {
  const { log } = redisBroker({ client: connect(redisUrl) });
  return { publish: (topic, text) => log.append(topic, text) };
}
