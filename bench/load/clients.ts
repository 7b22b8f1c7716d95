import { setTimeout as sleep } from 'node:timers/promises';
import type { Tally } from '../harness/load-api.ts';
import type { Subscription, Wire } from '../harness/system.ts';
import type { LightSocket } from './light-socket.ts';
import { LightSse } from './light-sse.ts';
import { LightWs } from './light-ws.ts';
import { SeqScanner } from './payload.ts';

/** Clients that are being connected at a time. */
const CONNECTING = 100;
/** How long all clients together may take to be subscribed, and an entry to arrive. */
const PATIENCE_MS = 60_000;

/** One subscribed client. */
export interface Client {
  readonly index: number;
  readonly subscription: Subscription;
  readonly socket: LightSocket;
  /** The number of the last entry it got; 0 before the first. */
  seq: number;
  count: number;
}

/** Sees each delivery. `frame` is text made on demand: most do not look. */
export type OnDelivery = (client: Client, seq: number, frame: () => string) => void;

/** All clients of the process, and the account of what they got. */
export class Clients {
  readonly #url: string;
  readonly #wire: Wire;
  readonly #scanner = new SeqScanner();
  #all: Client[] = [];
  #ready = 0;
  #closed = 0;
  #deliveries = 0;
  #lost = 0;
  #repeated = 0;
  #wakeAt = Number.POSITIVE_INFINITY;
  #wake: () => void = () => {};
  /** What a client's next entry adds to the number of its last one. */
  stride = 1;
  onDelivery: OnDelivery | undefined;

  constructor(url: string, wire: Wire) {
    this.#url = url;
    this.#wire = wire;
  }

  get count(): number {
    return this.#all.length;
  }

  get all(): readonly Client[] {
    return this.#all;
  }

  tally(): Tally {
    return { deliveries: this.#deliveries, lost: this.#lost, repeated: this.#repeated };
  }

  /** Forgets losses and repeats: entries published before all were subscribed are not owed to all. */
  forgive(): void {
    this.#lost = 0;
    this.#repeated = 0;
  }

  /** Connects clients until there are so many, and waits until each is subscribed. */
  async connect(count: number, subscriptionOf: (index: number) => Subscription): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (let index = this.#all.length; index < count; index += 1) {
      while (index - this.#ready >= CONNECTING && performance.now() < deadline) await sleep(2);
      this.add(subscriptionOf(index));
      if (index % 20 === 19) await sleep(0);
    }
    while (this.#ready < count) {
      if (performance.now() > deadline) throw new Error(`${this.#ready} of ${count} subscribed`);
      await sleep(5);
    }
    // Some systems say that a subscription stands before it does.
    await sleep(500);
  }

  /** Connects one more. `seq` is the last entry that it has. */
  add(subscription: Subscription, seq = 0): Client {
    const wire = this.#wire;
    const first = wire.open(subscription);
    const isSse = wire.transport === 'sse';
    const Socket = isSse ? LightSse : LightWs;
    const client: Client = {
      index: this.#all.length,
      subscription,
      seq,
      count: 0,
      socket: new Socket({
        url: isSse ? this.#url + (first ?? '') : this.#url,
        protocol: wire.protocol,
        onOpen: () => {
          if (!isSse && first !== undefined) client.socket.send(first);
        },
        onFrame: (buffer, start, end) => this.#receive(client, buffer, start, end),
        onClose: () => {
          this.#closed += 1;
        },
      }),
    };
    this.#all.push(client);
    return client;
  }

  /** Disconnects all. */
  async drop(): Promise<void> {
    const dropped = this.#all;
    this.#all = [];
    this.#closed = 0;
    this.#ready = 0;
    for (const { socket } of dropped) socket.destroy();
    while (this.#closed < dropped.length) await sleep(5);
  }

  /** Waits until so many deliveries have been made; answers false when they do not come. */
  async waitFor(deliveries: number, patienceMs = PATIENCE_MS): Promise<boolean> {
    if (this.#deliveries >= deliveries) return true;
    const late = new AbortController();
    const reached = new Promise<true>((resolve) => {
      this.#wakeAt = deliveries;
      this.#wake = () => resolve(true);
    });
    const gaveUp = sleep(patienceMs, false, { signal: late.signal }).catch(() => false);
    const result = await Promise.race([reached, gaveUp]);
    late.abort();
    this.#wakeAt = Number.POSITIVE_INFINITY;
    return result;
  }

  #receive(client: Client, buffer: Buffer, start: number, end: number): void {
    const seq = this.#scanner.find(buffer, start, end);
    if (seq < 0) {
      this.#control(client, buffer.toString('utf8', start, end));
      return;
    }
    if (client.seq > 0 && seq !== client.seq + this.stride) {
      if (seq <= client.seq) this.#repeated += 1;
      else this.#lost += (seq - client.seq) / this.stride - 1;
    }
    client.seq = seq;
    client.count += 1;
    this.#deliveries += 1;
    this.onDelivery?.(client, seq, () => buffer.toString('utf8', start, end));
    if (this.#deliveries >= this.#wakeAt) {
      this.#wakeAt = Number.POSITIVE_INFINITY;
      this.#wake();
    }
  }

  #control(client: Client, text: string): void {
    const answer = this.#wire.control(text, client.subscription);
    if (answer?.send !== undefined) client.socket.send(answer.send);
    if (answer?.ready) this.#ready += 1;
  }
}
