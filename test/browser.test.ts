import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { Cluster } from '../examples/orders/cluster.ts';
import { buildPage } from '../examples/orders/page-build.ts';
import { type BrowserServer, startBrowserServer } from './support/browser-server.ts';
import { findChromium, launchChromium } from './support/chromium.ts';
import { TRANSPORTS, type Transport } from './support/client.ts';
import { FeedPage } from './support/feed-page.ts';
import { SOAK } from './support/soak.ts';

/**
 * How long a tab stands still: two minutes where there is time for them, else as long as another takes to get everything. It is
 * halted by a debugger: tabs of a headless Chromium are never hidden, and so neither throttled nor frozen.
 */
const HALTED_MS = SOAK > 1 ? 120_000 : 0;

/** A browser is many processes, and shares two cores with other tests. */
vi.setConfig({ testTimeout: 60_000 + HALTED_MS, hookTimeout: 120_000 });
const WAIT = { timeout: 30_000 } as const;

const chromium = await findChromium();
if ('whyNot' in chromium) {
  console.warn(`The tests in Chromium (test/browser.test.ts) are not run: ${chromium.whyNot}.`);
}

let browser: Browser;
beforeAll(async () => {
  if ('path' in chromium) browser = await launchChromium(chromium.path);
});
afterAll(() => browser?.close());

interface World extends AsyncDisposable {
  readonly server: BrowserServer;
  readonly context: BrowserContext;
  /** Opens the page in a tab, and waits until its feed stands. */
  open(query?: string): Promise<FeedPage>;
  /** Makes a tab that is not there yet. */
  tab(query?: string): Promise<FeedPage>;
}

/** A server, and a browser that knows nothing yet. */
async function makeWorld(transport: Transport): Promise<World> {
  const server = await startBrowserServer();
  const context = await browser.newContext();
  const tab = async (query = ''): Promise<FeedPage> =>
    new FeedPage(await context.newPage(), `${server.url}/?transport=${transport}&${query}`);
  return {
    server,
    context,
    tab,
    async open(query) {
      const page = await tab(query);
      await page.open();
      await page.attached();
      return page;
    },
    async [Symbol.asyncDispose]() {
      await context.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf('whyNot' in chromium).each(TRANSPORTS)('in Chromium over %s', (transport) => {
  test('the first that a page shows is what is appended, in order', async () => {
    await using world = await makeWorld(transport);
    const { server } = world;
    const tab = await world.open();
    await server.append(3);
    await tab.upTo(3);
    expect(await tab.page.getByRole('listitem').allTextContents()).toEqual(['1', '2', '3']);
    expect(await tab.page.getByRole('status').textContent()).toBe('pending');
    expect(await tab.seen()).toMatchObject({ states: ['attached'], errors: [] });
  });

  test('a page goes on without a gap after its browser was offline', async () => {
    await using world = await makeWorld(transport);
    const { server, context } = world;
    const tab = await world.open();
    await server.append(2);
    await tab.upTo(2);
    await context.setOffline(true);
    // The emulation lets WebSockets live that are open.
    server.dropSockets();
    await tab.until(({ states }) => states.includes('lost'));
    await server.append(3);
    await context.setOffline(false);
    expect(await tab.upTo(5)).toEqual([1, 2, 3, 4, 5]);
    expect((await tab.seen()).errors).toEqual([]);
  });

  test('a page goes on without a gap when its server is started again', async () => {
    await using world = await makeWorld(transport);
    const { server } = world;
    const tab = await world.open();
    await server.append(2);
    await tab.upTo(2);
    await server.stop();
    await tab.until(({ states }) => states.includes('lost'));
    await server.append(2);
    await server.start();
    await tab.attached(2);
    await server.append(1);
    expect(await tab.upTo(5)).toEqual([1, 2, 3, 4, 5]);
    expect((await tab.seen()).errors).toEqual([]);
  });

  test('a reloaded page goes on where it was', async () => {
    await using world = await makeWorld(transport);
    const { server } = world;
    const tab = await world.open();
    await server.append(2);
    await tab.upTo(2);
    await tab.leave();
    await server.append(2);
    await tab.open();
    expect(await tab.upTo(4)).toEqual([3, 4]);
    await tab.page.reload();
    await tab.attached();
    await server.append(1);
    expect(await tab.upTo(5)).toEqual([5]);
  });

  test('a page that was away longer than the retention gets the snapshot once, and then what is live', async () => {
    await using world = await makeWorld(transport);
    const { server } = world;
    const tab = await world.open('feed=healed');
    await server.append(2);
    await tab.upTo(2);
    await tab.leave();
    await server.append(5);
    server.trim(1);
    await tab.open();
    await tab.until(({ values }) => values.length === 1);
    await server.append(2);
    expect(await tab.upTo(9)).toEqual([{ snapshot: [1, 2, 3, 4, 5, 6, 7] }, 8, 9]);
    expect((await tab.seen()).states).toContain('gap undefined');
    await tab.page.reload();
    await tab.attached();
    await server.append(1);
    expect(await tab.upTo(10)).toEqual([10]);
  });

  test('a halted tab gets what it slept through, once and in order', async () => {
    await using world = await makeWorld(transport);
    const { server } = world;
    const [tab, awake] = [await world.open(), await world.open()];
    const wake = await tab.halt();
    let isAwake = false;
    const answer = tab.seen().then(() => {
      isAwake = true;
    });
    await server.append(300);
    await awake.upTo(300);
    await delay(HALTED_MS);
    // Some of it meets a connection that died in its sleep.
    server.dropSockets();
    await server.append(300);
    await awake.upTo(600);
    expect(isAwake).toBe(false);
    await wake();
    await answer;
    expect(await tab.upTo(600)).toEqual(server.appended);
  });

  test('a token that was tampered with is forgotten, and the policy decides what follows', async () => {
    await using world = await makeWorld(transport);
    const { server } = world;
    const queries = ['onGap=restart', 'onGap=error', 'feed=healed'];
    const tabs = await Promise.all(queries.map((query) => world.open(query)));
    const [restarting, ending, healed] = tabs as [FeedPage, FeedPage, FeedPage];
    await server.append(1);
    for (const tab of tabs) {
      await tab.upTo(1);
      await tab.leave();
    }
    await server.append(1);
    const tampered = await Promise.all(tabs.map((tab) => tab.tamper()));
    await Promise.all(tabs.map((tab) => tab.open()));

    await restarting.attached();
    expect(await restarting.seen()).toMatchObject({
      states: ['gap signature', 'attached'],
      errors: [],
    });
    const refused = await ending.until(({ errors }) => errors.length > 0);
    expect(refused).toMatchObject({ states: ['gap signature'], errors: [400] });
    expect(await ending.tokens()).toEqual([]);
    await healed.until(({ values }) => values.length === 1);
    await server.append(1);
    expect(await restarting.upTo(3)).toEqual([3]);
    expect(await healed.upTo(3)).toEqual([{ snapshot: [1, 2] }, 3]);
    expect(tampered).not.toContain((await restarting.tokens())[0]);
  });

  test('a session that ends in mid-subscription ends it with 401, and a new one goes on without a gap', async () => {
    await using world = await makeWorld(transport);
    const { server } = world;
    const tab = await world.open();
    await server.append(2);
    await tab.upTo(2);
    server.endSession('first');
    const { errors } = await tab.until((seen) => seen.errors.length > 0);
    expect(errors).toEqual([401]);
    await server.append(2);
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    await tab.attached(2);
    await server.append(1);
    expect(await tab.upTo(5)).toEqual([1, 2, 3, 4, 5]);
    expect((await tab.seen()).errors).toEqual([401]);
  });
});

/** Connections that a browser makes to one host over HTTP/1.1. */
const MOST_CONNECTIONS = 6;

describe.skipIf('whyNot' in chromium)('seven tabs in Chromium over HTTP/1.1', () => {
  test('over sse the seventh does not load until another is closed', async () => {
    await using world = await makeWorld('sse');
    const { server } = world;
    const tabs: FeedPage[] = [];
    while (tabs.length < MOST_CONNECTIONS) tabs.push(await world.open());
    const seventh = await world.tab();
    let isOpen = false;
    const opening = seventh.open().then(() => {
      isOpen = true;
    });
    await server.append(1);
    for (const tab of tabs) await tab.upTo(1);
    expect({ isOpen, pages: server.pages }).toEqual({ isOpen: false, pages: MOST_CONNECTIONS });
    await tabs[0]?.page.close();
    await opening;
    await seventh.attached();
    await server.append(1);
    expect(await seventh.upTo(2)).toEqual([2]);
  });

  test('over ws all seven are live', async () => {
    await using world = await makeWorld('ws');
    const { server } = world;
    const tabs: FeedPage[] = [];
    while (tabs.length <= MOST_CONNECTIONS) tabs.push(await world.open());
    await server.append(1);
    for (const tab of tabs) expect(await tab.upTo(1)).toEqual([1]);
  });
});

describe.skipIf('whyNot' in chromium)("the demo's page in Chromium", () => {
  test('both clients miss and repeat nothing when one is cut off, the server is killed, and the page is loaded again', async () => {
    await using demo = await startDemo();
    await using context = await browser.newContext();
    const page = await context.newPage();
    await page.goto(demo.url);
    const client = (name: string) => page.getByRole('region', { name: `Client ${name}` });
    const [a, b] = [client('A'), client('B')] as const;
    const isLive = (of: typeof a) => of.getByRole('status').getByText('live').waitFor(WAIT);
    const has = (of: typeof a, received: number) =>
      vi.waitFor(
        async () =>
          expect(await of.getByRole('definition').allTextContents()).toEqual([
            String(received),
            '0',
            '0',
          ]),
        WAIT,
      );
    const order = page.getByRole('button', { name: 'Place an order' });
    const cut = a.getByRole('switch', { name: 'Cut my connection' });
    await Promise.all([isLive(a), isLive(b)]);

    // By keyboard alone.
    for (let placed = 0; placed < 2; placed += 1) await order.press('Enter');
    await Promise.all([has(a, 2), has(b, 2)]);
    await cut.press('Space');
    await a.getByRole('status').getByText('cut off').waitFor(WAIT);
    await order.press('Enter');
    await has(b, 3);
    await has(a, 2);
    await cut.press('Space');
    await Promise.all([has(a, 3), isLive(a)]);

    await page.getByRole('button', { name: 'Kill the server' }).press('Enter');
    await page.getByText('Killed instance 1.').waitFor(WAIT);
    await order.press('Enter');
    await Promise.all([has(a, 4), has(b, 4), isLive(a), isLive(b)]);

    await page.goto('about:blank');
    await demo.place();
    await page.goto(demo.url);
    // All of the board is there, though the feed sends only what came while the page was away.
    const rows = page.getByRole('listitem').getByText('×');
    await vi.waitFor(async () => expect(await rows.count()).toBe(10), WAIT);
    await Promise.all([has(a, 5), has(b, 5)]);
    await order.press('Enter');
    await Promise.all([has(a, 6), has(b, 6)]);
  });
});

interface Demo extends AsyncDisposable {
  readonly url: string;
  /** Places an order from elsewhere. */
  place(): Promise<void>;
}

/** Starts the demo's server, which is started again when it dies, on a journal of its own. */
async function startDemo(): Promise<Demo> {
  const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-demo-'));
  const page = await buildPage();
  await page.done;
  const env = {
    ...process.env,
    NODE_OPTIONS: '--import tsx',
    REDIS_URL: '',
    ORDERS_DIR: dir,
    ORDERS_PAGE: page.dir,
  };
  const cluster = new Cluster({ env, log: () => {} });
  const { port } = await cluster.add();
  const url = `http://127.0.0.1:${port}`;
  return {
    url,
    async place() {
      const order = { id: crypto.randomUUID(), item: 'Cortado', quantity: 2 };
      const response = await fetch(`${url}/trpc/orders.place`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(order),
      });
      expect(response.status).toBe(200);
    },
    async [Symbol.asyncDispose]() {
      await cluster.close();
      await page[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
