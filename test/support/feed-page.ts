import type { Page } from 'playwright-core';
import { countOf, type Seen } from '../browser-page/seen.ts';
import { ELSEWHERE } from './browser-page.ts';

/** Machines are slow, and share two cores with other tests. */
const TIMEOUT_MS = 30_000;

/** A tab with the page of the browser tests. */
export class FeedPage {
  readonly page: Page;
  readonly #url: string;

  constructor(page: Page, url: string) {
    this.page = page;
    this.#url = url;
  }

  /** Goes to the page, at first or again: the tab's storage stays. */
  async open(): Promise<void> {
    await this.page.goto(this.#url);
  }

  /** Goes elsewhere, where the tab's storage can still be looked at. */
  async leave(): Promise<void> {
    await this.page.goto(new URL(ELSEWHERE, this.#url).href);
  }

  /** Answers what the page saw since it was loaded. */
  async seen(): Promise<Seen> {
    return await this.page.evaluate('window.seen');
  }

  /** Waits until something holds for what the page saw, and answers that. */
  async until(holds: (seen: Seen) => boolean): Promise<Seen> {
    let seen = await this.seen();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const fail = (): void => reject(new Error(`seen: ${JSON.stringify(seen)}`));
      timer = setTimeout(fail, TIMEOUT_MS);
    });
    try {
      while (!holds(seen)) seen = await Promise.race([this.#after(seen), late]);
      return seen;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits until the feed has stood so often since the page was loaded. */
  attached(times = 1): Promise<Seen> {
    return this.until(
      ({ states }) => states.filter((state) => state === 'attached').length >= times,
    );
  }

  /** Waits until the page has been without the server since it was loaded. */
  lost(): Promise<Seen> {
    return this.until(({ states }) => states.includes('lost'));
  }

  /** Waits for the value, and answers all. */
  async upTo(last: number): Promise<Seen['values']> {
    const { values } = await this.until((seen) => seen.values.at(-1) === last);
    return values;
  }

  /** Answers the tokens in the tab's store. */
  async tokens(): Promise<readonly string[]> {
    return await this.page.evaluate(
      "Object.keys(sessionStorage).filter((key) => key.startsWith('brokerfeed:')).map((key) => sessionStorage[key])",
    );
  }

  /** Changes one character of the signature of the tab's token, and answers what it is then. The page must have been left. */
  async tamper(): Promise<string> {
    return await this.page.evaluate(`(() => {
      const key = Object.keys(sessionStorage).find((key) => key.startsWith('brokerfeed:'));
      const token = sessionStorage[key];
      const [head, char, tail] = [token.slice(0, -4), token.at(-4), token.slice(-3)];
      return sessionStorage[key] = head + (char === 'A' ? 'B' : 'A') + tail;
    })()`);
  }

  /** Waits until the page has seen more than that. */
  async #after(seen: Seen): Promise<Seen> {
    return await this.page.evaluate(`window.seen.after(${countOf(seen)})`);
  }
}
