import { memoryBroker } from '@brokerfeed/core/memory';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { GraphStore } from '../examples/graph/graph-store.ts';
import { TOPIC } from '../examples/graph/router.ts';
import { seed } from '../examples/graph/seed.ts';
import { startServer } from '../examples/graph/server.ts';
import { findChromium, launchChromium } from './support/chromium.ts';
import { never } from './support/graph-world.ts';
import { SECRET } from './support/router.ts';

/** A browser is many processes, and shares two cores with other tests. */
const WAIT = { timeout: 30_000 };
vi.setConfig({ testTimeout: 90_000, hookTimeout: 120_000 });

const chromium = await findChromium();
if ('whyNot' in chromium) {
  console.warn(`The test of the graph's page is not run: ${chromium.whyNot}.`);
}

let browser: Browser;
beforeAll(async () => {
  if ('path' in chromium) browser = await launchChromium(chromium.path);
});
afterAll(() => browser?.close());

describe.skipIf('whyNot' in chromium)('in Chromium', () => {
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

async function placeOf(page: Page, id: string): Promise<string | null> {
  return page.locator(`[data-entity=${id}]`).getAttribute('transform');
}

async function nodesIn(page: Page): Promise<string[]> {
  return (await page.locator('[data-entity] text').allTextContents()).sort();
}
