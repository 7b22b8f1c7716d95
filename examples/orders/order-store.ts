import { appendFile, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Order } from './router.ts';

/** Orders that a snapshot holds. */
const RECENT = 200;

/**
 * Stands in for the application's database: a file of JSON lines that all instances append to. Like a database, and unlike
 * the memory broker, it outlives the process.
 */
export class OrderStore {
  readonly #dir: string;
  readonly #file: string;

  constructor(dir: string) {
    this.#dir = dir;
    this.#file = join(dir, 'orders.jsonl');
  }

  /** Adds an order. Adding it again changes nothing that readers see. */
  async add(order: Order): Promise<void> {
    await mkdir(this.#dir, { recursive: true });
    await appendFile(this.#file, `${JSON.stringify(order)}\n`);
  }

  /** Reads the newest orders, oldest first. */
  async recent(): Promise<Order[]> {
    const orders = new Map<string, Order>();
    for (const line of (await this.#read()).split('\n')) {
      if (line === '') continue;
      const order: Order = JSON.parse(line);
      orders.set(order.id, order);
    }
    return [...orders.values()].slice(-RECENT);
  }

  async #read(): Promise<string> {
    try {
      return await readFile(this.#file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
      throw error;
    }
  }
}
