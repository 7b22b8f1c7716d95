import type { Browser, Page } from 'playwright-core';
import { vi } from 'vitest';
import { BrowserTabs, type TabSource } from './browser-tabs.ts';
import { joinChromium } from './chromium.ts';

/** Ticks of a timer in the tab in front, while those in the tabs behind it are counted. */
const TICKS = 10;
const TICK_MS = 100;
const WAIT = { timeout: 30_000, interval: 100 } as const;

/** A browser's own window, as people have it: tabs behind the one in front are hidden. */
export class BrowserWindow {
  readonly #tabs: BrowserTabs;
  readonly #cover: Page;

  private constructor(tabs: BrowserTabs, cover: Page) {
    this.#tabs = tabs;
    this.#cover = cover;
  }

  static async of(browser: Browser): Promise<BrowserWindow> {
    const [context] = (await joinChromium(browser)).contexts();
    if (context === undefined) throw new Error('this Chromium has no window');
    return new BrowserWindow(new BrowserTabs(context), await context.newPage());
  }

  /** Lends tabs to a test, until that disposes of what this answers. */
  lend(): TabSource {
    return this.#tabs.lend();
  }

  /** Brings a tab to the front that covers all that are lent. */
  async cover(): Promise<void> {
    await this.#cover.bringToFront();
  }

  /** Answers how often a timer ticks in a tab, for each tick in the one that covers it. */
  async ticks(tab: Page): Promise<number> {
    const [before, start] = [await countTicks(tab), await countTicks(this.#cover)];
    const count = await vi.waitFor(async () => {
      const ticks = (await countTicks(this.#cover)) - start;
      if (ticks < TICKS) throw new Error(`the timer in the tab in front has ticked ${ticks} times`);
      return ticks;
    }, WAIT);
    return ((await countTicks(tab)) - before) / count;
  }
}

/** Has a timer tick in the tab, and answers how often it has by now. */
async function countTicks(tab: Page): Promise<number> {
  return await tab.evaluate(`(() => {
    window.ticking ??= setInterval(() => { window.ticks += 1; }, ${TICK_MS});
    return window.ticks ??= 0;
  })()`);
}

/** Freezes a hidden tab, as browsers do after a while: its script does not run until what this answers is called. */
export async function freeze(tab: Page): Promise<() => Promise<void>> {
  const session = await tab.context().newCDPSession(tab);
  await session.send('Page.setWebLifecycleState', { state: 'frozen' });
  return async () => {
    await session.send('Page.setWebLifecycleState', { state: 'active' });
    await session.detach();
  };
}
