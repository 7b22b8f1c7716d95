import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** Where a connection can go. */
export interface Target {
  readonly port: number;
  readonly live: boolean;
}

export interface TcpProxy {
  readonly port: number;
  close(): Promise<void>;
}

/**
 * Spreads TCP connections over the live targets, each in its turn. It knows nothing of HTTP, and never answers for a target: a
 * connection that no target takes is dropped, and the client tries again. (A 502 would end a browser's EventSource for good.)
 */
export async function startProxy(
  port: number,
  targets: () => readonly Target[],
): Promise<TcpProxy> {
  const open = new Set<Socket>();
  let turn = 0;

  function nextTargets(): Target[] {
    const live = targets().filter((target) => target.live);
    const first = turn++ % Math.max(live.length, 1);
    return [...live.slice(first), ...live.slice(0, first)];
  }

  async function route(client: Socket): Promise<void> {
    for (const target of nextTargets()) {
      const upstream = await dial(target.port);
      if (upstream !== undefined) return join(client, upstream);
    }
    client.destroy();
  }

  const server = createServer((client) => {
    open.add(client);
    client.on('error', () => {});
    client.on('close', () => open.delete(client));
    void route(client);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      for (const client of open) client.destroy();
      await closed;
    },
  };
}

/** Connects, or answers undefined where nobody listens: a target may be dead before it is known to be. */
async function dial(port: number): Promise<Socket | undefined> {
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  try {
    await once(socket, 'connect');
    return socket;
  } catch {
    return undefined;
  }
}

/** Pipes two connections into each other, until either ends: then the other does. */
function join(client: Socket, upstream: Socket): void {
  upstream.on('error', () => {});
  upstream.on('close', () => client.destroy());
  client.on('close', () => upstream.destroy());
  if (client.destroyed) {
    upstream.destroy();
    return;
  }
  client.setNoDelay(true);
  client.pipe(upstream);
  upstream.pipe(client);
}
