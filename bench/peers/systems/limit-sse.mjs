import { listen } from '../lib/http.mjs';
import { StreamReaders, streamPublisher } from '../lib/streams.mjs';
import { trpcSse } from '../lib/trpc-wire.mjs';

/** What Node does at best with one `res.write` of a ready text for each event: the events are tRPC's, made once. */
export const system = {
  async start(redisUrl) {
    const readers = new StreamReaders(redisUrl);
    const topics = new Map();
    const { server, address } = await listen(async (request, response) => {
      const { searchParams } = new URL(request.url, 'http://localhost');
      const { topic } = JSON.parse(searchParams.get('input'));
      let responses = topics.get(topic);
      if (responses === undefined) {
        responses = new Set();
        topics.set(topic, responses);
        await readers.listen(topic, (entries) => {
          for (const { id, text } of entries) {
            const event = `data: ${text}\nid: ${id}\n\n\n`;
            for (const one of responses) one.write(event);
          }
        });
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('event: connected\ndata: {}\n\n\n');
      response.on('close', () => responses.delete(response));
      responses.add(response);
    });
    server.requestTimeout = 0;
    return `http://${address}`;
  },
  publisher: streamPublisher,
  wire: trpcSse,
};
