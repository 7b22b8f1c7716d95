import { IORedisPublisher } from '@orpc/experimental-publisher/ioredis';
import { os } from '@orpc/server';
import { RPCHandler } from '@orpc/server/ws';
import { z } from 'zod';
import { listenWs } from '../lib/http.mjs';
import { connect } from '../lib/streams.mjs';

/** Its default of 100 drops the oldest without a word: a client that missed more would be faster and not whole. */
const MAX_BUFFERED_EVENTS = Number.POSITIVE_INFINITY;

const publisherOf = (redisUrl) =>
  new IORedisPublisher({
    commander: connect(redisUrl),
    listener: connect(redisUrl),
    resumeRetentionSeconds: 600,
    maxBufferedEvents: MAX_BUFFERED_EVENTS,
  });

export const system = {
  async start(redisUrl) {
    const publisher = publisherOf(redisUrl);
    const orders = os.input(z.object({ topic: z.string() })).handler(async function* ({
      input,
      signal,
      lastEventId,
    }) {
      yield* publisher.subscribe(input.topic, { signal, lastEventId });
    });
    const handler = new RPCHandler({ orders });
    const { wss, url } = await listenWs();
    wss.on('connection', (ws) => void handler.upgrade(ws, { context: {} }));
    return url;
  },
  publisher(redisUrl) {
    const publisher = publisherOf(redisUrl);
    return { publish: (topic, text) => publisher.publish(topic, JSON.parse(text)) };
  },
  wire: {
    transport: 'ws',
    open({ topic, lastEventId }) {
      const headers = lastEventId === undefined ? {} : { h: { 'last-event-id': lastEventId } };
      return JSON.stringify({ i: '1', p: { u: '/orders', b: { json: { topic } }, ...headers } });
    },
    control(text) {
      if (!text.includes('text/event-stream')) throw new Error(text);
      return { ready: true };
    },
    tokenOf: (text) => JSON.parse(text).p.m.id,
  },
};
