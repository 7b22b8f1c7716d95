import { createAdapter } from '@socket.io/redis-streams-adapter';
import { Server } from 'socket.io';
import { listen } from '../lib/http.mjs';
import { connect } from '../lib/streams.mjs';

/** Its default of 10,000 would trim the entries that the catch-up asks for. */
const MAX_LENGTH = 200_000;
/** No ping falls into a run. */
const PING_INTERVAL_MS = 600_000;

/** Socket.IO with its Redis Streams adapter, and connection state recovery. */
export const system = {
  async start(redisUrl) {
    const { server, address } = await listen();
    const io = new Server(server, {
      transports: ['websocket'],
      adapter: createAdapter(connect(redisUrl), { maxLen: MAX_LENGTH }),
      connectionStateRecovery: { maxDisconnectionDuration: 120_000 },
      pingInterval: PING_INTERVAL_MS,
      perMessageDeflate: false,
    });
    io.on('connection', (socket) => {
      if (!socket.recovered) void socket.join(socket.handshake.auth.topic);
    });
    return `ws://${address}/socket.io/?EIO=4&transport=websocket`;
  },
  /** Writes what the adapter would, from a process that serves nobody. */
  publisher(redisUrl) {
    const redis = connect(redisUrl);
    const packet = (topic, text) =>
      `{"packet":{"type":2,"data":["order",${text}],"nsp":"/"},"opts":{"rooms":["${topic}"],"except":[],"flags":{}}}`;
    return {
      publish: (topic, text) =>
        redis.xadd(
          'socket.io',
          'MAXLEN',
          '~',
          MAX_LENGTH,
          '*',
          'uid',
          'emitter',
          'nsp',
          '/',
          'type',
          '3',
          'data',
          packet(topic, text),
        ),
    };
  },
  wire: {
    transport: 'ws',
    open: () => undefined,
    control(text, subscription) {
      const { topic, lastEventId, session } = subscription;
      if (text === '2') return { send: '3' };
      if (text.startsWith('0')) {
        const resume = session === undefined ? {} : { pid: session, offset: lastEventId };
        return { send: `40${JSON.stringify({ topic, ...resume })}` };
      }
      if (!text.startsWith('40')) throw new Error(text);
      subscription.session = JSON.parse(text.slice(2)).pid;
      return { ready: true };
    },
    tokenOf: (text) => JSON.parse(text.slice(2)).at(-1),
  },
};
