import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { extname, join } from 'node:path';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
};

/** Serves the built page of the folder `ORDERS_PAGE`, and `POST /demo/kill`, which ends this process as a crash would. */
export async function serveFiles(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = request.url ?? '/';
  if (request.method === 'POST' && url === '/demo/kill') {
    // Answered first: a browser sends a request again that was cut off, and so would kill the next one too.
    response.once('finish', () => process.kill(process.pid, 'SIGKILL'));
    send(response, 202, 'text/plain', process.env.INSTANCE ?? 'the server');
    return;
  }
  const name = url === '/' ? 'index.html' : /^\/(assets\/[\w-]+\.\w+)$/.exec(url)?.[1];
  const content = request.method === 'GET' ? await read(name) : undefined;
  if (name === undefined || content === undefined) send(response, 404, 'text/plain', 'not found');
  else send(response, 200, TYPES[extname(name)] ?? 'application/octet-stream', content);
}

async function read(name: string | undefined): Promise<Buffer | undefined> {
  const dir = process.env.ORDERS_PAGE;
  if (name === undefined || dir === undefined) return undefined;
  try {
    return await readFile(join(dir, name));
  } catch {
    return undefined;
  }
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': 'no-store',
  });
  response.end(body);
}
