import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const FOLDER = join(ROOT, 'node_modules/.cache/brokerfeed');
// The packages among its imports that are CommonJS ask for built-in modules by it.
const REQUIRE =
  "import { createRequire } from 'node:module';\nconst require = createRequire(import.meta.url);";

const bundles = new Map<string, string>();

/**
 * Puts a script and all that it imports into one file of JavaScript, once for all tests of a file. A process that runs it
 * starts in the time of Node alone, where a loader of TypeScript needs most of a second of a core for each start.
 */
export function bundled(script: URL): string {
  let path = bundles.get(script.href);
  if (path === undefined) {
    path = bundle(fileURLToPath(script));
    bundles.set(script.href, path);
  }
  return path;
}

function bundle(script: string): string {
  const { outputFiles } = buildSync({
    entryPoints: [script],
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    banner: { js: REQUIRE },
    // Builds pages, with parts that are no JavaScript: a process that has a page built is run from its sources.
    external: ['vite'],
    write: false,
  });
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, `${relative(ROOT, script).replaceAll(/[\\/]/g, '_')}.mjs`);
  // Test files run in parallel, and another may be running this one: it is there whole, or not at all.
  const draft = `${path}.${process.pid}`;
  for (const { contents } of outputFiles) writeFileSync(draft, contents);
  renameSync(draft, path);
  return path;
}
