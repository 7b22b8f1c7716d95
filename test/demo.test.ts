import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, inject, test, vi } from 'vitest';
import type { OrdersRouter } from '../examples/orders/router.ts';
import { bundled } from './support/bundle.ts';
import { connect } from './support/client.ts';
import { collect } from './support/collector.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const MAIN = 'examples/orders/main.ts';
/** A demo is many processes, and shares two cores with other tests. */
vi.setConfig({ testTimeout: 60_000 });

const ON_REDIS = { REDIS_URL: inject('redisUrl') };

interface Start {
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
}

/** As people start it: from its sources, and with the page built first. */
const FROM_SOURCES: Start = { args: ['--import', 'tsx', MAIN], env: {} };

/** In a tenth of the time, and without a page. */
const BUNDLED: Start = {
  args: [bundled(new URL(`../${MAIN}`, import.meta.url))],
  env: {
    ORDERS_INSTANCE: bundled(new URL('../examples/orders/instance.ts', import.meta.url)),
    ORDERS_PAGE: 'none',
  },
};

test('the smoke run misses and repeats nothing when the only instance is killed, on a journal', async () => {
  await using demo = runDemo(['--smoke']);
  expect(await demo.exit()).toBe(0);
  expect(demo.lines.at(-1)).toBe(
    'missed 0, repeated 0 (ws 200 entries, sse 200 entries, 1 instance, 1 killed)',
  );
});

test('the smoke run misses and repeats nothing when one of two instances on Redis is killed', async () => {
  await using demo = runDemo(['--cluster', '--smoke'], ON_REDIS);
  expect(await demo.exit()).toBe(0);
  expect(demo.lines.at(-1)).toBe(
    'missed 0, repeated 0 (ws 200 entries, sse 200 entries, 2 instances, 1 killed)',
  );
});

test('the smoke run on the memory broker shows the snapshot path', async () => {
  await using demo = runDemo(['--smoke', '--memory']);
  expect(await demo.exit()).toBe(0);
  expect(demo.lines.at(-1)).toBe(
    'missed 0, snapshots 2 (ws 200 orders, sse 200 orders, 1 instance, 1 killed)',
  );
});

test('one server has the page, and sends an order placed over HTTP to those who follow over SSE', async () => {
  await using demo = runDemo(['--memory', '--port', '0'], {}, FROM_SOURCES);
  const url = await demo.url();
  const page = await fetch(url);
  const [, source] = /<script type="module"[^>]* src="([^"]+)"/.exec(await page.text()) ?? [];
  const script = await fetch(`${url}${source}`);
  expect(script.headers.get('content-type')).toMatch('text/javascript');
  expect(await script.text()).toContain('EventSource');

  await using client = connect<OrdersRouter>(addressesOf(url), 'sse');
  using feed = collect((on) => client.trpc.orders.feed.subscribe(undefined, on));
  await feed.take(2);
  const order = await place(url);
  expect(await feed.take(3)).toEqual([{ feed: 'attached' }, { feed: 'live' }, order]);

  demo.process.kill('SIGINT');
  expect(await demo.exit()).toBe(0);
});

test('a client goes on without a snapshot when the demo is killed and started again', async () => {
  using folder = makeFolder();
  await using demo = runDemo(['--port', '0'], folder.env);
  const url = await demo.url();
  await using client = connect<OrdersRouter>(addressesOf(url), 'ws');
  using feed = collect((on) => client.trpc.orders.feed.subscribe(undefined, on));
  await feed.take(2);
  const before = await place(url);
  await feed.take(3);
  demo.process.kill('SIGKILL');
  await demo.exit();

  await using again = runDemo(['--port', new URL(url).port], folder.env);
  expect(await again.url()).toBe(url);
  // From another connection, and before the client is back: it is in the log, and comes first.
  const meanwhile = await place(url);
  await feed.until(({ values }) => ordersOf(values).length === 2);
  expect(ordersOf(feed.values)).toEqual([before, meanwhile]);
});

test('a client behind the proxy goes on when its instance is killed, and nothing outlives the demo', async () => {
  await using demo = runDemo(['--port', '0'], ON_REDIS);
  const url = await demo.url();
  await using client = connect<OrdersRouter>(addressesOf(url), 'ws');
  using feed = collect((on) => client.trpc.orders.feed.subscribe(undefined, on));
  await feed.take(2);
  const before = await place(url);
  await feed.take(3);
  // One after the other: the client's own is among them, and there is always one to go to.
  demo.type('kill');
  await demo.untilLine((line) => line.includes('is live'), 3);
  demo.type('kill');
  await demo.untilLine((line) => line.includes('ended (SIGKILL)'), 2);
  const after = await place(url);
  await feed.until(({ values }) => ordersOf(values).length === 2);
  expect(ordersOf(feed.values)).toEqual([before, after]);

  // Its instances hold the demo's own stdout: the pipe ends with the last of them.
  const closed = once(demo.process, 'close');
  demo.process.kill('SIGKILL');
  await closed;
});

function addressesOf(url: string): { httpUrl: string; wsUrl: string } {
  return { httpUrl: `${url}/trpc`, wsUrl: `${url.replace('http', 'ws')}/trpc` };
}

/** The frames that are orders: it says `attached` anew whenever the client comes back. */
function ordersOf(values: readonly unknown[]): unknown[] {
  return values.filter((value) => !('feed' in (value as object)));
}

/** Places an order by a bare HTTP request, and answers it. Its id makes a second try harmless, where a server just died. */
async function place(url: string): Promise<object> {
  const order = { id: randomUUID(), item: 'cortado', quantity: 2 };
  const send = (): Promise<Response> =>
    fetch(`${url}/trpc/orders.place`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(order),
    });
  const response = await vi.waitFor(send, { timeout: 10_000 });
  expect(response.status).toBe(200);
  return order;
}

interface Demo extends AsyncDisposable {
  readonly process: ChildProcess;
  readonly lines: readonly string[];
  /** Waits for the end of all its processes, and answers the exit code. */
  exit(): Promise<number | null>;
  /** Waits for the address that it prints. */
  url(): Promise<string>;
  /** Waits for a line, or for as many like it. */
  untilLine(found: (line: string) => boolean, times?: number): Promise<void>;
  /** Types a line into its terminal. */
  type(line: string): void;
}

/** Runs the demo as a process of its own, with a folder and Redis keys that nobody else has. */
function runDemo(flags: readonly string[], env: NodeJS.ProcessEnv = {}, start = BUNDLED): Demo {
  const folder = makeFolder();
  const own = { ...folder.env, REDIS_URL: '', ORDERS_PREFIX: `orders-test-${randomUUID()}` };
  const child = spawn(process.execPath, [...start.args, ...flags], {
    cwd: ROOT,
    env: { ...process.env, ...start.env, ...own, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const lines: string[] = [];
  const output = createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  const ended = once(output, 'close').then(() => {
    throw new Error(`the demo has ended:\n${lines.join('\n')}`);
  });
  ended.catch(() => {});
  // Bounded by the test's own time: how long a process takes to start depends on what else runs.
  async function untilLine(found: (line: string) => boolean, times = 1): Promise<void> {
    while (lines.filter(found).length < times) await Promise.race([once(output, 'line'), ended]);
  }
  return {
    process: child,
    lines,
    untilLine,
    exit: async () => (await closed)[0],
    async url() {
      const address = /http:\/\/127\.0\.0\.1:\d+/;
      await untilLine((line) => address.test(line));
      return address.exec(lines.join('\n'))?.[0] ?? '';
    },
    type: (line) => void child.stdin.write(`${line}\n`),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await closed;
      folder[Symbol.dispose]();
    },
  };
}

interface Folder extends Disposable {
  readonly env: { readonly ORDERS_DIR: string };
}

/** Makes a folder for a demo's files, which goes with its disposal. */
function makeFolder(): Folder {
  const dir = mkdtempSync(join(tmpdir(), 'orders-'));
  const remove = (): void => rmSync(dir, { recursive: true, force: true });
  return { env: { ORDERS_DIR: dir }, [Symbol.dispose]: remove };
}
