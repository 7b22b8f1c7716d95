import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseToken } from '@brokerfeed/core/wire';
import { Redis } from 'ioredis';
import { expect, inject, test, vi } from 'vitest';
import { codeBlocks, documents, ROOT, readText } from './support/documents.ts';

/** A compiler, or two programs that compile their sources first, beside other tests. */
vi.setConfig({ testTimeout: 60_000 });

/** Documents whose code is for people who write a broker of their own: its parts are not ours. */
const OTHERS_CODE = ['packages/conformance/README.md'];

/** The names that the recipes use without saying where they come from. */
const PRELUDE = `
import type { Broker } from '@brokerfeed/core';
import type { BrokerHarness } from '@brokerfeed/conformance';
import type * as feeds from '@brokerfeed/trpc';
import type * as client from '@trpc/client';
import type { TRPCBuilder, TRPCError as Refusal } from '@trpc/server';
import { initTRPC } from '@trpc/server';
import type { applyWSSHandler } from '@trpc/server/adapters/ws';
import type { Server } from 'node:http';
import type { WebSocketServer } from 'ws';
import { z as zod } from 'zod';
import { withFeedErrors } from '@brokerfeed/trpc';
import type { router as appRouter } from './SNAPSHOT';

const OrderSchema = zod.object({ id: zod.string(), item: zod.string() });
type OrderValue = zod.infer<typeof OrderSchema>;
interface User { readonly id: string; readonly tenants: readonly string[]; sees(order: OrderValue): boolean }
interface UserContext { readonly user: User }
const root = initTRPC.context<UserContext>().create({ errorFormatter: withFeedErrors() });

declare global {
  type Order = OrderValue;
  type Context = UserContext;
  type AppRouter = typeof appRouter;
  const Order: typeof OrderSchema;
  const t: typeof root;
  const z: typeof zod;
  const broker: Broker;
  const env: Readonly<Record<'FEED_SECRET' | 'FEED_SECRET_PREVIOUS', string>>;
  const db: { readonly orders: { recent(): Promise<OrderValue[]>; insert(order: OrderValue): Promise<void> } };
  const { brokerFeed, feedInput }: typeof feeds;
  const { createTRPCClient, createWSClient, retryLink, wsLink }: typeof client;
  const TRPCError: typeof Refusal;
  const trpc: client.TRPCClient<AppRouter>;
  const wss: WebSocketServer;
  const server: Server;
  const handler: ReturnType<typeof applyWSSHandler>;
  const makeHarness: () => Promise<BrokerHarness>;
}
`;

test('the code in the documents is sound', async () => {
  await using folder = await makeFolder();
  const blocks = documents()
    .filter((path) => !OTHERS_CODE.includes(path))
    .flatMap((path) => {
      const stem = path.replace(/\.md$/, '').replaceAll('/', '-');
      return codeBlocks(readText(path), 'ts').map((code, index) => ({
        // The README's are files of one program, and say which.
        name: /^\/\/ ([\w-]+\.ts)/.exec(code)?.[1] ?? `${stem}-${index + 1}.ts`,
        code,
      }));
    });
  const snapshot = blocks.find(({ code }) => code.includes('export const router'));
  expect(snapshot).toBeDefined();
  for (const { name, code } of blocks) await folder.write(name, `${code}\nexport {};\n`);
  await folder.write('prelude.ts', PRELUDE.replace('SNAPSHOT', snapshot?.name ?? ''));
  // By the name that it has in the recipe for Next.js.
  await folder.write('router.ts', `export { router as appRouter } from './${snapshot?.name}';\n`);
  const config = {
    extends: join(ROOT, 'tsconfig.test.json'),
    compilerOptions: {
      rootDir: '/',
      paths: { '@/server/router': ['./router.ts'] },
      types: ['node'],
      lib: ['ES2023', 'ES2024.String', 'ESNext.Disposable', 'DOM'],
    },
    include: ['*.ts'],
  };
  await folder.write('tsconfig.json', JSON.stringify(config));

  const found = await compile(folder.path);
  // What the packages' own sources say is not of this test.
  expect(found.filter((line) => /^[\w-]+\.ts\(/.test(line))).toEqual([]);
  expect(found.filter((line) => line.startsWith('error'))).toEqual([]);
});

test("the README's example runs: a stock client places an order and is told of it", async () => {
  const [serverCode, clientCode] = codeBlocks(readText('README.md'), 'ts');
  expect(serverCode).toMatch(/^\/\/ server\.ts/);
  expect(clientCode).toMatch(/^\/\/ client\.ts/);
  const port = String(await freePort());
  await using folder = await makeFolder();
  await folder.write('server.ts', serverCode?.replace('3000', port) ?? '');
  await folder.write('client.ts', clientCode?.replace('3000', port) ?? '');
  await folder.write(
    'websocket.mjs',
    "import { WebSocket } from 'ws';\nglobalThis.WebSocket ??= WebSocket;\n",
  );
  await using redis = openRedis();
  const env = { REDIS_URL: redis.url, FEED_SECRET: 'a secret for the run of the README' };
  await using server = run(folder.path, ['server.ts'], env);
  await using client = run(folder.path, ['--import', './websocket.mjs', 'client.ts'], {});
  const line = await Promise.race([client.line(), server.line()]);
  const [token = '', ...item] = line.split(' ');
  expect(item.join(' ')).toBe('flat white');
  expect(parseToken(token)).toMatchObject({ fields: { kind: 'entry', ordinal: 1 } });
  expect(parseToken(token)?.signature).toBeDefined();
});

interface Folder extends AsyncDisposable {
  readonly path: string;
  write(name: string, text: string): Promise<void>;
}

/** Makes a folder outside the repository that finds what is installed in it. */
async function makeFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'brokerfeed-docs-'));
  await mkdir(path, { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(path, 'node_modules'));
  await writeFile(join(path, 'package.json'), '{"type":"module"}');
  return {
    path,
    write: (name, text) => writeFile(join(path, name), text),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** Runs the compiler, and answers the lines that it prints. */
function compile(folder: string): Promise<string[]> {
  return new Promise((resolve) => {
    const args = [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', '.', '--pretty', 'false'];
    execFile(process.execPath, args, { cwd: folder }, (_, stdout) => resolve(stdout.split('\n')));
  });
}

interface Running extends AsyncDisposable {
  /** Answers the next line that it prints. Rejects when it ends. */
  line(): Promise<string>;
}

function run(cwd: string, args: readonly string[], env: NodeJS.ProcessEnv): Running {
  const child = spawn(process.execPath, ['--import', 'tsx', ...args], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const output = createInterface({ input: child.stdout });
  const ended = closed.then(() => {
    throw new Error(`${args.at(-1)} has ended`);
  });
  ended.catch(() => {});
  return {
    line: () => Promise.race([once(output, 'line').then(([line]) => String(line)), ended]),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await closed;
    },
  };
}

/** The run's Redis, for a program that thinks it has one of its own: every key gets a prefix, and goes in the end. */
function openRedis(): AsyncDisposable & { readonly url: string } {
  const prefix = `docs-${crypto.randomUUID()}:`;
  const url = new URL(inject('redisUrl'));
  url.searchParams.set('keyPrefix', prefix);
  return {
    url: url.href,
    async [Symbol.asyncDispose]() {
      const client = new Redis(inject('redisUrl'));
      for await (const keys of client.scanStream({ match: `*${prefix}*` })) {
        if (keys.length > 0) await client.unlink(keys);
      }
      client.disconnect();
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
