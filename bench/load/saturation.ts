import type { Publisher } from '../harness/system.ts';
import type { Clients } from './clients.ts';

/** How long the last entries may take to arrive. */
const PATIENCE_MS = 30_000;

export interface SaturationOptions {
  readonly topic: string;
  readonly window: number;
  readonly burst: number;
  /** Makes the next entry. */
  next(): string;
}

/** Publishes as fast as entries are delivered. */
export class Saturation {
  readonly #clients: Clients;
  readonly #publisher: Publisher;
  readonly #options: SaturationOptions;
  readonly #before: number;
  readonly #running: Promise<void>;
  #published = 0;
  #stopped = false;

  constructor(clients: Clients, publisher: Publisher, options: SaturationOptions) {
    this.#clients = clients;
    this.#publisher = publisher;
    this.#options = options;
    this.#before = clients.tally().deliveries;
    this.#running = this.#run();
  }

  /** Answers how many deliveries were owed and never came. */
  async stop(): Promise<number> {
    this.#stopped = true;
    await this.#running;
    const expected = this.#before + this.#published * this.#clients.count;
    await this.#clients.waitFor(expected, PATIENCE_MS);
    return expected - this.#clients.tally().deliveries;
  }

  async #run(): Promise<void> {
    const { topic, window, burst, next } = this.#options;
    while (!this.#stopped) {
      const texts = Array.from({ length: burst }, next);
      this.#published += burst;
      await Promise.all(texts.map((text) => this.#publisher.publish(topic, text)));
      const room = this.#before + (this.#published - window + burst) * this.#clients.count;
      if (!(await this.#clients.waitFor(room, PATIENCE_MS))) return;
    }
  }
}
