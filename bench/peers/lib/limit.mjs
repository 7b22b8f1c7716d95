import { Sender } from 'ws';
import { listenWs } from './http.mjs';
import { isAfter, StreamReaders, streamPublisher } from './streams.mjs';

/** How long a page that one client read serves the next, in milliseconds. */
const KEEP_PAGE_MS = 2_000;
const MAX_BUFFERED_BYTES = 1024 * 1024;

const messageOf = ({ id, text }) => `{"id":"${id}","data":${text}}`;
const frameOf = (entry) =>
  Buffer.concat(
    Sender.frame(Buffer.from(messageOf(entry)), {
      fin: true,
      opcode: 1,
      mask: false,
      readOnly: true,
      rsv1: false,
    }),
  );

/** How one reply of the log reaches every socket of a topic. */
const WRITERS = {
  /** `ws.send` with the message, for each entry and socket. */
  string(sockets, entries) {
    for (const entry of entries) {
      const message = messageOf(entry);
      for (const ws of sockets) ws.send(message);
    }
  },
  /** The frame is built once, and written for each entry and socket. */
  frame(sockets, entries) {
    for (const entry of entries) {
      const frame = frameOf(entry);
      for (const ws of sockets) ws._socket.write(frame);
    }
  },
  /** All frames of the reply are built once, and written together for each socket. */
  batch(sockets, entries) {
    const frames = Buffer.concat(entries.map(frameOf));
    for (const ws of sockets) ws._socket.write(frames);
  },
};

/** What can be done at all: no RPC, no tokens, no checks, and a protocol as short as it gets. */
export function limit(mode) {
  return {
    async start(redisUrl) {
      const readers = new StreamReaders(redisUrl);
      const { wss, url } = await listenWs();
      const topics = new Map();
      const pages = new Map();

      const topicOf = async (name) => {
        let topic = topics.get(name);
        if (topic === undefined) {
          topic = { sockets: new Set(), last: undefined };
          topic.ready = readers.listen(name, (entries) => {
            topic.last = entries.at(-1).id;
            WRITERS[mode](topic.sockets, entries);
          });
          topics.set(name, topic);
        }
        await topic.ready;
        return topic;
      };

      /** Reads, and frames, a page once for all that need it. */
      const pageOf = (name, after) => {
        const key = `${name} ${after}`;
        let page = pages.get(key);
        if (page === undefined) {
          page = readers.page(name, after).then(({ entries, atEnd }) => ({
            frames: Buffer.concat(entries.map(frameOf)),
            last: entries.at(-1)?.id ?? after,
            atEnd,
          }));
          pages.set(key, page);
          setTimeout(() => pages.delete(key), KEEP_PAGE_MS);
        }
        return page;
      };

      const catchUp = async (ws, name, topic, after) => {
        for (let at = after; ; ) {
          const page = await pageOf(name, at);
          if (ws.readyState !== ws.OPEN) return;
          ws._socket.write(page.frames);
          at = page.last;
          if (ws._socket.writableLength > MAX_BUFFERED_BYTES) {
            await new Promise((resolve) => {
              ws._socket.once('drain', resolve).once('close', resolve);
            });
          }
          // Nothing is awaited between this look and the caller's: nothing comes between.
          if (!page.atEnd) continue;
          if (topic.last === undefined || !isAfter(topic.last, at)) return;
          pages.delete(`${name} ${at}`);
        }
      };

      const subscribe = async (ws, message) => {
        const { topic: name, last } = JSON.parse(message.toString());
        const topic = await topicOf(name);
        ws.on('close', () => topic.sockets.delete(ws));
        ws.send('{"ready":true}');
        if (last !== undefined) await catchUp(ws, name, topic, last);
        if (ws.readyState === ws.OPEN) topic.sockets.add(ws);
      };

      wss.on('connection', (ws) => {
        ws.on('error', () => {});
        ws.on('message', (message) => void subscribe(ws, message));
      });
      return url;
    },
    publisher: streamPublisher,
    wire: {
      transport: 'ws',
      open: ({ topic, lastEventId }) => JSON.stringify({ topic, last: lastEventId }),
      control: () => ({ ready: true }),
      tokenOf: (text) => JSON.parse(text).id,
    },
  };
}
