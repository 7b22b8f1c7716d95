import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type BrowserServer, startBrowserServer } from './support/browser-server.ts';
import { BrowserTabs, type TabSource } from './support/browser-tabs.ts';
import { BrowserWindow, freeze } from './support/browser-window.ts';
import { findChromium, launchChromium } from './support/chromium.ts';
import { TRANSPORTS, type Transport } from './support/client.ts';
import { FeedPage } from './support/feed-page.ts';
import { SOAK } from './support/soak.ts';

/** How long tabs stay hidden: two minutes where there is time for them, and after the first a browser slows timers further. */
const HIDDEN_MS = SOAK > 1 ? 120_000 : 0;

/** A browser is many processes, and shares two cores with other tests. */
vi.setConfig({ testTimeout: 60_000 + HIDDEN_MS, hookTimeout: 120_000 });
const WAIT = { timeout: 30_000 } as const;

const chromium = await findChromium();
if ('whyNot' in chromium) {
  console.warn(`The tests in Chromium (test/browser.test.ts) are not run: ${chromium.whyNot}.`);
}

let browser: Browser;
let tabs: BrowserTabs;
beforeAll(async () => {
  if ('whyNot' in chromium) return;
  browser = await launchChromium(chromium.path);
  tabs = new BrowserTabs(await browser.newContext());
});
afterAll(() => browser?.close());

interface World extends AsyncDisposable {
  readonly server: BrowserServer;
  readonly context: BrowserContext;
  /** Opens the page in a tab, and waits until its feed stands. */
  open(query?: string): Promise<FeedPage>;
  /** Takes a tab that is not there yet. */
  tab(query?: string): Promise<FeedPage>;
}

/** A server, and tabs that know nothing of it yet. */
async function makeWorld(transport: Transport): Promise<World> {
  const server = await startBrowserServer();
  const lent = tabs.lend();
  const tab = async (query = ''): Promise<FeedPage> =>
    new FeedPage(await lent.newTab(), addressOf(server, transport, query));
  return {
    server,
    context: tabs.context,
    tab,
    async open(query) {
      const page = await tab(query);
      await page.open();
      await page.attached();
      return page;
    },
    async [Symbol.asyncDispose]() {
      await lent[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

function addressOf(server: BrowserServer, transport: Transport, query = ''): string {
  return `${server.url}/?transport=${transport}&${query}`;
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
    const { states, errors } = await tab.until(({ states }) => states.at(-1) === 'live');
    expect([states[0], errors]).toEqual(['attached', []]);
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
    await tab.lost();
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
    await tab.lost();
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

    const { states, errors } = await restarting.attached();
    expect([states.slice(0, 2), errors]).toEqual([['gap signature', 'attached'], []]);
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
    // Behind another it is drawn seldom, and a click waits for that.
    await tab.page.bringToFront();
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
    const tabs = await Promise.all(Array.from({ length: MOST_CONNECTIONS }, () => world.open()));
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
    const all = Array.from({ length: MOST_CONNECTIONS + 1 }, () => world.open());
    const tabs = await Promise.all(all);
    await server.append(1);
    for (const tab of tabs) expect(await tab.upTo(1)).toEqual([1]);
  });
});

describe.skipIf('whyNot' in chromium)('tabs behind another in Chromium', () => {
  let window: BrowserWindow;
  beforeAll(async () => {
    window = await BrowserWindow.of(browser);
  });
  const visibilityOf = ({ page }: FeedPage): Promise<string> =>
    page.evaluate('document.visibilityState');

  test('hidden ones, whose timers are throttled, come back by themselves and when they are shown, without a gap', async () => {
    await using server = await startBrowserServer();
    await using lent = window.lend();
    const hidden = await openAll(server, lent);
    await window.cover();
    await delay(HIDDEN_MS);
    for (const tab of hidden) await expect.poll(() => visibilityOf(tab), WAIT).toBe('hidden');
    // From ten ticks a second to one.
    const ticks = hidden.map(({ page }) =>
      expect.poll(() => window.ticks(page), WAIT).toBeLessThan(0.4),
    );
    await Promise.all(ticks);
    await server.append(2);
    for (const tab of hidden) await tab.upTo(2);

    server.dropSockets();
    for (const tab of hidden) await tab.lost();
    await server.append(2);
    for (const tab of hidden) await tab.upTo(4);
    await server.stop();
    for (const tab of hidden) await tab.until(({ states }) => states.at(-1) === 'lost');
    await server.append(2);
    for (const tab of hidden) expect(await visibilityOf(tab)).toBe('hidden');

    await server.start();
    for (const tab of hidden) {
      await tab.page.bringToFront();
      expect(await tab.upTo(6)).toEqual([1, 2, 3, 4, 5, 6]);
      expect(await visibilityOf(tab)).toBe('visible');
      expect((await tab.seen()).errors).toEqual([]);
    }
  });

  test('frozen ones get what they slept through, once and in order', async () => {
    await using server = await startBrowserServer();
    await using lent = window.lend();
    const frozen = await openAll(server, lent);
    await using others = tabs.lend();
    const awake = await openAll(server, others);
    await window.cover();
    const thaws = await Promise.all(frozen.map(({ page }) => freeze(page)));
    expect(await Promise.all(frozen.map(({ page }) => window.ticks(page)))).toEqual([0, 0]);
    await server.append(30);
    for (const tab of awake) await tab.upTo(30);
    // Some of it meets a connection that died in its sleep.
    server.dropSockets();
    await server.append(30);
    for (const tab of awake) await tab.upTo(60);
    for (const tab of frozen) expect((await tab.seen()).values).toEqual([]);

    for (const thaw of thaws) await thaw();
    for (const tab of frozen) expect(await tab.upTo(60)).toEqual(server.appended);
  });
});

/** Opens the page once over each transport. */
async function openAll(server: BrowserServer, source: TabSource): Promise<FeedPage[]> {
  const pages: FeedPage[] = [];
  for (const transport of TRANSPORTS) {
    const page = new FeedPage(await source.newTab(), addressOf(server, transport));
    await page.open();
    await page.attached();
    pages.push(page);
  }
  return pages;
}
