import type { IncomingMessage, ServerResponse } from 'node:http';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** A document of the same origin that has nothing in it. */
export const ELSEWHERE = '/elsewhere';

/** Answers a request with the page, or with its script. */
export function sendPage(request: IncomingMessage, response: ServerResponse, script: string): void {
  const isScript = request.url === '/page.js';
  response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
  response.setHeader('cache-control', 'no-store');
  response.end(isScript ? script : request.url === ELSEWHERE ? '' : PAGE);
}

const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Numbers</title><link rel="icon" href="data:,"></head>
<body><script type="module" src="/page.js"></script></body>
</html>`;

let bundled: Promise<string> | undefined;

/** Bundles the page's script, once for all tests of a file. */
export function pageScript(): Promise<string> {
  bundled ??= bundle();
  return bundled;
}

async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../browser-page/main.tsx', import.meta.url))],
    bundle: true,
    format: 'esm',
    target: 'es2023',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"production"' },
    minify: true,
    write: false,
  });
  return outputFiles.map(({ text }) => text).join('');
}
