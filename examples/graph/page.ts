import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';

const PAGE = new URL('page/index.html', import.meta.url);
const SCRIPT = fileURLToPath(new URL('page/main.ts', import.meta.url));

/** Serves the page and its script. */
export async function serveFiles(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    switch (`${request.method} ${request.url}`) {
      case 'GET /':
        return send(response, 200, 'text/html', await readFile(PAGE));
      case 'GET /main.js':
        return send(response, 200, 'text/javascript', await script());
      default:
        return send(response, 404, 'text/plain', 'not found');
    }
  } catch (error) {
    console.error(error);
    send(response, 500, 'text/plain', 'the page could not be made');
  }
}

let bundle: Promise<string> | undefined;

/** Bundles the page's script, at the first asking. */
function script(): Promise<string> {
  bundle ??= bundleScript();
  return bundle;
}

async function bundleScript(): Promise<string> {
  const { build } = await import('esbuild');
  const options = { bundle: true, format: 'esm', target: 'es2022', write: false } as const;
  const { outputFiles } = await build({ entryPoints: [SCRIPT], ...options });
  return outputFiles.map(({ text }) => text).join('');
}

function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': 'no-store',
  });
  response.end(body);
}
