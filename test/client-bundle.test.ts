import { createContext, runInContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import { packToken, printToken } from '@brokerfeed/core/wire';
import { build } from 'esbuild';
import { expect, test } from 'vitest';
import { ROOT } from './support/documents.ts';

/** What the client may weigh on a page: minified and gzipped, without its peers. */
const MAX_BYTES = 4_000;

const NODE_GLOBALS = /\b(?:Buffer|process|require|setImmediate|__dirname)\b/;

const PEERS = ['@trpc/client', '@trpc/server', '@trpc/server/observable'];

interface Bundle {
  readonly code: string;
  /** What it imports from elsewhere. */
  readonly imports: readonly string[];
}

/** Bundles a program as for a page. A module of Node's own in it is an error. */
async function bundle(code: string, external: string[], format: 'esm' | 'iife'): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: ROOT, loader: 'ts' },
    bundle: true,
    minify: true,
    format,
    platform: 'browser',
    target: 'es2022',
    external,
    metafile: true,
    write: false,
  });
  const [output] = Object.values(metafile.outputs);
  const outside = output?.imports.filter((imported) => imported.external === true) ?? [];
  return { code: outputFiles[0]?.text ?? '', imports: outside.map(({ path }) => path) };
}

test('the client is small, and imports nothing but its peers', async () => {
  const { code, imports } = await bundle("export * from '@brokerfeed/client';", PEERS, 'esm');
  expect(code).toContain('pagehide');
  expect(gzipSync(code, { level: 9 }).length).toBeLessThan(MAX_BYTES);
  expect(code).not.toMatch(NODE_GLOBALS);
  expect(PEERS).toEqual(expect.arrayContaining([...imports]));
});

test('the client runs where there is nothing but the language and timers', async () => {
  const fields = { kind: 'entry', epoch: 'AAECAwQFBgcI', id: '7', ordinal: 7, index: 0 } as const;
  const token = printToken(packToken(fields, undefined), undefined);
  const { code } = await bundle(
    `import { feedLink, sessionStore } from '@brokerfeed/client';
    import { observable } from '@trpc/server/observable';
    const next = (op) => observable((observer) => {
      asked.push(op.input);
      for (const data of ['first', 'again']) observer.next({ result: { type: 'data', id: token, data: { data } } });
    });
    const link = feedLink({ store: sessionStore() })({});
    for (const id of [1, 2]) {
      const op = { id, type: 'subscription', path: 'feed', context: {}, signal: null };
      const on = { next: ({ result }) => received.push(result.data.data) };
      link({ op, next }).subscribe(on).unsubscribe();
    }`,
    [],
    'iife',
  );
  const received: unknown[] = [];
  const asked: unknown[] = [];
  runInContext(code, createContext({ received, asked, token, setTimeout, clearTimeout }));
  expect(received).toEqual(['first', 'first']);
  expect(asked).toEqual([undefined, { lastEventId: token }]);
});
