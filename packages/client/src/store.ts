import { pageStorage } from './page.ts';

/**
 * Keeps the newest resume token of each subscription under a key made of its path and input. A `Map` is one. Whatever a
 * store throws is taken as "nothing there": the feed goes on.
 */
export interface FeedStore {
  /** Answers the token of a key, at once; nullish where there is none. */
  get(key: string): string | null | undefined;
  set(key: string, token: string): unknown;
  delete(key: string): unknown;
}

/** Keys that are kept in memory; the one that was written longest ago goes first. */
const MAX_KEYS = 1_000;

/**
 * Makes a store that lives as long as the page or process: subscribing again goes on where it ended, a reload does not. It
 * keeps the newest 1000 keys.
 */
export function memoryStore(): FeedStore {
  const tokens = new Map<string, string>();
  return {
    get: (key) => tokens.get(key),
    set(key, token) {
      tokens.delete(key);
      tokens.set(key, token);
      for (const oldest of tokens.keys()) {
        if (tokens.size <= MAX_KEYS) break;
        tokens.delete(oldest);
      }
    },
    delete: (key) => tokens.delete(key),
  };
}

/** The options of {@link sessionStore}. */
export interface SessionStoreOptions {
  /** What keys begin with. Put the user's id into it where several may sign in in one tab. @default 'brokerfeed:' */
  readonly prefix?: string;
}

/**
 * Makes a store in the tab's `sessionStorage`: a reload goes on where the page was. Each tab has its own. In memory where
 * there is no `sessionStorage`, or none that may be used.
 */
export function sessionStore({ prefix = 'brokerfeed:' }: SessionStoreOptions = {}): FeedStore {
  const storage = pageStorage();
  if (storage === undefined) return memoryStore();
  return {
    get: (key) => storage.getItem(prefix + key),
    set: (key, token) => storage.setItem(prefix + key, token),
    delete: (key) => storage.removeItem(prefix + key),
  };
}
