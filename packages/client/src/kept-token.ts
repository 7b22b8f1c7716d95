import type { FeedClock } from './clock.ts';
import { onPage } from './page.ts';
import { inputText } from './resume-input.ts';
import type { FeedStore } from './store.ts';

/** A store is written once in this time at most, in milliseconds; and when the page is left, and when a feed ends. */
const WRITE_EVERY_MS = 1_000;

/** The server's own default limit. A longer text in a store is nothing that a feed ever put there. */
const MAX_TOKEN_LENGTH = 512;

/** Gives each live subscription a place in the store of its own. */
export class TokenKeeper {
  readonly #store: FeedStore;
  readonly #clock: FeedClock;
  readonly #taken = new Set<string>();

  constructor(store: FeedStore, clock: FeedClock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * Opens the place of a subscription. Of several that live at a time with one path and input, each has its own, by the
   * order in which they came: one that is behind must not be told, after a reload, to go on from where another was.
   * Undefined for an input that has no text.
   */
  open(path: string, input: unknown): KeptToken | undefined {
    let text: string;
    try {
      text = `${path} ${inputText(input)}`;
    } catch {
      return undefined;
    }
    let key = text;
    for (let place = 2; this.#taken.has(key); place += 1) key = `${text} ${place}`;
    this.#taken.add(key);
    return new KeptToken(this.#store, this.#clock, key, () => this.#taken.delete(key));
  }
}

/** The token of one subscription, in a store. Nothing that the store throws leaves it. */
export class KeptToken {
  readonly #store: FeedStore;
  readonly #clock: FeedClock;
  readonly #key: string;
  #onClose: () => void;
  readonly #leaves: readonly (() => void)[];
  #unwritten: string | undefined;
  #cancelWrite: (() => void) | undefined;

  constructor(store: FeedStore, clock: FeedClock, key: string, onClose: () => void) {
    this.#store = store;
    this.#clock = clock;
    this.#key = key;
    this.#onClose = onClose;
    const write = (): void => this.#write();
    // On phones a page that was hidden may never be told that it is left.
    this.#leaves = [onPage('pagehide', write), onPage('visibilitychange', write)];
  }

  read(): string | undefined {
    const token = attempt(() => this.#store.get(this.#key));
    const usable = typeof token === 'string' && token !== '' && token.length <= MAX_TOKEN_LENGTH;
    return usable ? token : undefined;
  }

  /** Keeps a newer token: at once after a quiet time, else when the time since the last write is over. */
  keep(token: string): void {
    this.#unwritten = token;
    if (this.#cancelWrite === undefined) this.#writeAndRest();
  }

  /** Takes the token out of the store at once: it is dead. */
  forget(): void {
    this.#unwritten = undefined;
    attempt(() => this.#store.delete(this.#key));
  }

  /** Writes what is to be written, and gives the place away. Idempotent: it may be another's by now. */
  close(): void {
    this.#write();
    this.#cancelWrite?.();
    for (const leave of this.#leaves) leave();
    this.#onClose();
    this.#onClose = () => {};
  }

  #writeAndRest(): void {
    this.#cancelWrite = undefined;
    if (this.#unwritten === undefined) return;
    this.#write();
    this.#cancelWrite = this.#clock.after(WRITE_EVERY_MS, () => this.#writeAndRest());
  }

  #write(): void {
    const token = this.#unwritten;
    this.#unwritten = undefined;
    if (token !== undefined) attempt(() => this.#store.set(this.#key, token));
  }
}

/** A store is full, forbidden or broken: the feed does without it. */
function attempt<T>(action: () => T): T | undefined {
  try {
    return action();
  } catch {
    return undefined;
  }
}
