import { once } from 'node:events';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

/** Clients that connect at once must not be turned away. */
const BACKLOG = 4_096;

/** Serves HTTP on a free port. */
export async function listen(handler = (_request, response) => response.writeHead(404).end()) {
  const server = createServer(handler).listen(0, '127.0.0.1', BACKLOG);
  await once(server, 'listening');
  return { server, address: `127.0.0.1:${server.address().port}` };
}

/** Serves WebSockets on a free port. */
export async function listenWs(options = {}) {
  const { server, address } = await listen();
  const wss = new WebSocketServer({ server, perMessageDeflate: false, ...options });
  return { wss, url: `ws://${address}` };
}
