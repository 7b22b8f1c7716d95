import { type Broker, isBrokerError } from '@brokerfeed/core';
import type { FaultHistory } from './faults-history.ts';
import type { FaultValue } from './faults-record.ts';

/** Every so many appends one has several entries: a commit must come whole. */
const LARGE_EVERY = 5;
const LARGE = 3;
const AGAIN_MS = 20;

/**
 * Appends all the time, one append after another, and notes what was acknowledged. An append that fails is repeated under
 * its idempotency key until it is acknowledged, as a caller would.
 */
export class FaultAppender {
  readonly #topic: string;
  readonly #broker: Broker;
  readonly #history: FaultHistory;
  readonly #everyMs: number;
  readonly #key = crypto.randomUUID();
  readonly #closing = new AbortController();
  #turn: Promise<unknown> = Promise.resolve();
  #running: Promise<void> | undefined;
  #state: 'held' | 'going' | 'closed' = 'held';
  #next = 1;
  /** An append that failed in a way that no repetition mends. */
  failure: { readonly error: unknown } | undefined;

  constructor(topic: string, broker: Broker, history: FaultHistory, everyMs: number) {
    this.#topic = topic;
    this.#broker = broker;
    this.#history = history;
    this.#everyMs = everyMs;
  }

  /** The name of the next append. */
  get next(): number {
    return this.#next;
  }

  /** Begins, or goes on. */
  goOn(): void {
    if (this.#state !== 'held') return;
    this.#state = 'going';
    this.#running = this.#run();
  }

  /** Stops after the append under way. */
  async hold(): Promise<void> {
    if (this.#state === 'going') this.#state = 'held';
    await this.#running;
  }

  /** Appends so many commits now, in turn with those of {@link goOn}. */
  async append(commits: number, through: Broker = this.#broker): Promise<void> {
    for (let done = 0; done < commits; done += 1) await this.#inTurn(() => this.#one(through));
  }

  /** Gives up. */
  async close(): Promise<void> {
    this.#state = 'closed';
    this.#closing.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      while (this.#state === 'going') {
        await this.append(1);
        await pause(this.#everyMs);
      }
    } catch (error) {
      this.failure ??= { error };
    }
  }

  /** Acknowledgements must come in the order of the log. */
  #inTurn(act: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(act);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  async #one(through: Broker): Promise<void> {
    const n = this.#next;
    this.#next += 1;
    const of = n % LARGE_EVERY === 0 ? LARGE : 1;
    const values = Array.from({ length: of }, (_, index) =>
      JSON.stringify({ n, index, of } satisfies FaultValue),
    );
    const idempotencyKey = `${this.#key}-${n}`;
    for (let broker = through; ; broker = this.#broker) {
      try {
        const position = await broker.log.append(this.#topic, values, { idempotencyKey });
        this.#history.acknowledge(n, of, position);
        return;
      } catch (error) {
        if (!isBrokerError(error, 'UNAVAILABLE') || this.#closing.signal.aborted) throw error;
        await pause(AGAIN_MS);
      }
    }
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
