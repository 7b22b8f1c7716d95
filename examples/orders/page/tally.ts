import type { Order } from '../router.ts';

/** What a client has counted so far. */
export interface Counts {
  readonly received: number;
  readonly missed: number;
  readonly repeated: number;
}

/** Where counts are kept through a reload: the tab's `sessionStorage`. */
export interface TallyStorage {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

interface Kept extends Counts {
  readonly newest: readonly (readonly [till: string, number: number])[];
}

const NOTHING: Kept = { received: 0, missed: 0, repeated: 0, newest: [] };

/**
 * Counts by the receipts what a client missed or got twice: a till numbers its orders without holes, and places one after the
 * other. It asks neither the feed nor its tokens, and is kept through a reload, as the token is.
 */
export class Tally {
  readonly #storage: TallyStorage;
  readonly #key: string;
  readonly #newest: Map<string, number>;
  /** Orders of the newest snapshot that may come as entries too. */
  #snapshot = new Set<string>();
  #counts: Counts;

  constructor(storage: TallyStorage, key: string) {
    this.#storage = storage;
    this.#key = key;
    const text = storage.getItem(key);
    const { newest, ...counts }: Kept = text === null ? NOTHING : JSON.parse(text);
    this.#newest = new Map(newest);
    this.#counts = counts;
  }

  get counts(): Counts {
    return this.#counts;
  }

  /** Counts an order of the feed. */
  take({ id, receipt }: Order): void {
    let { received, missed, repeated } = this.#counts;
    received += 1;
    if (receipt !== undefined && !this.#snapshot.delete(id)) {
      // Of a till that was here before this client, nothing earlier is due.
      const newest = this.#newest.get(receipt.till) ?? receipt.number - 1;
      if (receipt.number <= newest) repeated += 1;
      else missed += receipt.number - newest - 1;
      this.#newest.set(receipt.till, Math.max(newest, receipt.number));
    }
    this.#counts = { received, missed, repeated };
  }

  /** A snapshot brings a client up to date: what is in it is not missed, and may come once more. */
  takeSnapshot(orders: readonly Order[]): void {
    this.#snapshot = new Set(orders.map(({ id }) => id));
    for (const { receipt } of orders) {
      if (receipt === undefined) continue;
      const newest = this.#newest.get(receipt.till) ?? 0;
      this.#newest.set(receipt.till, Math.max(newest, receipt.number));
    }
  }

  /** Keeps the counts for the page that comes after a reload. */
  keep(): void {
    const kept: Kept = { ...this.#counts, newest: [...this.#newest] };
    this.#storage.setItem(this.#key, JSON.stringify(kept));
  }
}
