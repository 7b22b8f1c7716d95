import { createTRPCClient, httpLink } from '@trpc/client';
import type { Order, OrdersRouter } from '../router.ts';
import { TRPC_URL } from './board-client.ts';

const ITEMS = [
  'Espresso',
  'Flat white',
  'Cortado',
  'Filter coffee',
  'Cold brew',
  'Cocoa',
  'Green tea',
] as const;
const AGAIN_MS = 250;
/** The longest time between two orders while it is busy. */
const BUSY_MS = 200;

/** Places orders, one after the other and each until it is placed: its id makes a repeated try harmless. */
export class Till {
  readonly #name = crypto.randomUUID().slice(0, 4);
  readonly #trpc = createTRPCClient<OrdersRouter>({ links: [httpLink({ url: TRPC_URL })] });
  #placed = 0;
  #queue: Promise<void> = Promise.resolve();
  #isBusy = false;

  /** Places one more order, after those before it. */
  place(): Promise<void> {
    this.#queue = this.#queue.then(() => this.#send(this.#order()));
    return this.#queue;
  }

  /** Whether it places one order after the other by itself. */
  set isBusy(isBusy: boolean) {
    const wasBusy = this.#isBusy;
    this.#isBusy = isBusy;
    if (isBusy && !wasBusy) void this.#rush();
  }

  async #rush(): Promise<void> {
    while (this.#isBusy) {
      await this.place();
      await wait(Math.random() * BUSY_MS);
    }
  }

  #order(): Order {
    this.#placed += 1;
    return {
      id: crypto.randomUUID(),
      item: ITEMS[Math.floor(Math.random() * ITEMS.length)] as string,
      quantity: 1 + Math.floor(Math.random() * 4),
      receipt: { till: this.#name, number: this.#placed },
    };
  }

  async #send(order: Order): Promise<void> {
    for (;;) {
      try {
        await this.#trpc.orders.place.mutate(order);
        return;
      } catch {
        await wait(AGAIN_MS);
      }
    }
  }
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
