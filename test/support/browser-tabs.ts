import type { BrowserContext, Page } from 'playwright-core';

/** Where a test has its tabs from. */
export interface TabSource extends AsyncDisposable {
  /** Answers a tab in which nothing goes on. */
  newTab(): Promise<Page>;
}

/**
 * Tabs of a browser, which are used again: each new one is a process that starts, and costs more than most tests. They keep
 * nothing for the next test, whose server is another site.
 */
export class BrowserTabs {
  readonly context: BrowserContext;
  readonly #free: Page[] = [];

  constructor(context: BrowserContext) {
    this.context = context;
  }

  /** Lends tabs to a test, until that disposes of what this answers. */
  lend(): TabSource {
    const lent: Page[] = [];
    return {
      newTab: async () => {
        const tab = this.#free.pop() ?? (await this.context.newPage());
        lent.push(tab);
        return tab;
      },
      [Symbol.asyncDispose]: async () => {
        const open = lent.filter((tab) => !tab.isClosed());
        await Promise.all(open.map(empty));
        this.#free.push(...open);
      },
    };
  }
}

async function empty(tab: Page): Promise<void> {
  // A port that is free again may be that of a later test's server.
  await tab.evaluate('window.leave?.(); sessionStorage.clear();');
}
