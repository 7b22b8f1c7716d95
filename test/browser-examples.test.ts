import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryBroker } from '@brokerfeed/core/memory';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { GraphStore } from '../examples/graph/graph-store.ts';
import { TOPIC } from '../examples/graph/router.ts';
import { seed } from '../examples/graph/seed.ts';
import { startServer } from '../examples/graph/server.ts';
import { Cluster } from '../examples/orders/cluster.ts';
import { buildPage } from '../examples/orders/page-build.ts';
import { bundled } from './support/bundle.ts';
import { findChromium, launchChromium } from './support/chromium.ts';
import { never } from './support/graph-world.ts';
import { SECRET } from './support/router.ts';

/** A browser is many processes, and shares two cores with other tests. */
vi.setConfig({ testTimeout: 90_000, hookTimeout: 120_000 });
const WAIT = { timeout: 30_000 } as const;

const chromium = await findChromium();
if ('whyNot' in chromium) {
  console.warn(
    `The tests of the examples' pages (test/browser-examples.test.ts) are not run: ${chromium.whyNot}.`,
  );
}

let browser: Browser;
beforeAll(async () => {
  if ('path' in chromium) browser = await launchChromium(chromium.path);
});
afterAll(() => browser?.close());

describe.skipIf('whyNot' in chromium)('the page of an example, in Chromium', () => {
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

  test('two pages hold the graph by applying frames, and fetch nothing when it changes', async () => {
    const broker = memoryBroker();
    const store = await GraphStore.open(broker, TOPIC, never);
    await seed(store);
    const server = await startServer({ broker, store, secret: SECRET }, 0);
    const context = await browser.newContext();
    try {
      const writer = await context.newPage();
      const reader = await context.newPage();
      const asked: string[] = [];
      reader.on('request', (request) => asked.push(new URL(request.url()).pathname));
      for (const page of [writer, reader]) {
        await page.goto(`http://127.0.0.1:${server.port}/`);
        await expect.poll(() => nodesIn(page), WAIT).toEqual(['Ann', 'Ben', 'Café']);
      }
      const atStart = asked.length;
      expect(asked.filter((path) => path.startsWith('/trpc/')).sort()).toEqual([
        '/trpc/feed',
        '/trpc/load',
      ]);

      // Behind another it is drawn seldom, and a click waits for that.
      await writer.bringToFront();
      await writer.getByRole('button', { name: 'Add' }).click();
      await expect.poll(async () => (await nodesIn(reader)).length, WAIT).toBe(4);

      await writer.locator('[data-entity=cafe] circle').click();
      await writer.locator('#note').pressSequentially('open late');
      const typed = 'open late'.length;
      // Each key is a commit that nobody is told of.
      await expect.poll(() => store.generation, WAIT).toBe(2 + typed);
      await writer.locator('#note').blur();
      await expect.poll(() => nodesIn(reader), WAIT).toContain('Café: open late');

      const ben = await writer.locator('[data-entity=ben] circle').boundingBox();
      if (ben === null) expect.fail('Ben is not drawn');
      await writer.mouse.move(ben.x + 16, ben.y + 16);
      await writer.mouse.down();
      await writer.mouse.move(ben.x + 56, ben.y + 46);
      await writer.mouse.move(ben.x + 116, ben.y + 66);
      await writer.mouse.up();
      await expect.poll(() => placeOf(reader, 'ben'), WAIT).not.toBe('translate(420 110)');

      await writer.locator('[data-entity=ann] circle').click();
      await writer.getByRole('button', { name: 'Remove' }).click();
      await expect.poll(() => nodesIn(reader), WAIT).not.toContain('Ann');
      await expect.poll(() => reader.locator('[data-relation]').count(), WAIT).toBe(0);

      // A node, a note, a place, two relations that end, and with them a node.
      expect(await reader.locator('#frames').textContent()).toBe(
        '6 frames applied, the graph loaded 1 time',
      );
      expect(asked.slice(atStart)).toEqual([]);
      expect(await nodesIn(writer)).toEqual(await nodesIn(reader));
      expect(await placeOf(writer, 'ben')).toBe(await placeOf(reader, 'ben'));
    } finally {
      await context.close();
      await server.close();
    }
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
    REDIS_URL: '',
    ORDERS_DIR: dir,
    ORDERS_INSTANCE: bundled(new URL('../examples/orders/instance.ts', import.meta.url)),
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

async function placeOf(page: Page, id: string): Promise<string | null> {
  return page.locator(`[data-entity=${id}]`).getAttribute('transform');
}

async function nodesIn(page: Page): Promise<string[]> {
  return (await page.locator('[data-entity] text').allTextContents()).sort();
}
