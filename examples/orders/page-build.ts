import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCES = fileURLToPath(new URL('page', import.meta.url));

/** The page as browsers get it, in a folder that goes when this is disposed. */
export interface BuiltPage extends AsyncDisposable {
  readonly dir: string;
  /** Resolves when the page is there. */
  readonly done: Promise<void>;
}

/**
 * Builds the page into a folder of its own. Once for all servers, which come and go: it must not cost a server that is started
 * again any time.
 */
export async function buildPage(): Promise<BuiltPage> {
  const dir = await mkdtemp(join(tmpdir(), 'orders-page-'));
  const done = bundle(dir);
  // Whoever waits for it is told; until then it is nobody's rejection.
  done.catch(() => {});
  return {
    dir,
    done,
    async [Symbol.asyncDispose]() {
      await done.catch(() => {});
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function bundle(outDir: string): Promise<void> {
  // Loaded only here: the smoke run needs no page.
  const { build } = await import('vite');
  await build({
    root: SOURCES,
    configFile: false,
    // Its warnings are about directives in other people's packages.
    logLevel: 'error',
    build: { outDir, emptyOutDir: true, target: 'es2023', modulePreload: { polyfill: false } },
  });
}
