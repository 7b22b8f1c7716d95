import { randomBytes, randomUUID } from 'node:crypto';
import { createTRPCClient, httpLink, retryLink, type TRPCClient } from '@trpc/client';
import { brokerKind, forgetTopics, isDurable } from './broker.ts';
import { Cluster, type Instance } from './cluster.ts';
import { freePort } from './free-port.ts';
import { startProxy, type TcpProxy } from './proxy.ts';
import type { OrdersRouter } from './router.ts';
import { SmokeClient } from './smoke-client.ts';
import { reportOnLog, reportOnSnapshots, type SmokeRun } from './smoke-report.ts';

/** Orders placed before the kill, while the clients are away, and once they are back. */
const ORDERS = { before: 80, meanwhile: 60, after: 60 } as const;
/** Far more than it takes: seven seconds, of which an EventSource waits three before it comes back. */
const TIMEOUT_MS = 40_000;
const PLACE_AGAIN_MS = 50;
const PLACERS = 4;

/**
 * Shows by itself what the board shows: a client on each transport, orders, a killed server, more orders. Prints what was
 * missed and repeated, and answers whether that is nothing.
 */
export async function runSmoke(env: NodeJS.ProcessEnv, stop: AbortSignal): Promise<boolean> {
  const kind = brokerKind(env);
  const ownTopics = { ...env, ORDERS_PREFIX: `orders-smoke-${randomBytes(6).toString('hex')}` };
  const smoke = new Smoke(new Cluster({ env: ownTopics, log: console.log }), await freePort());
  const end = (): void => smoke.end();
  stop.addEventListener('abort', end);
  const timer = setTimeout(end, TIMEOUT_MS);
  console.log(`broker: ${kind}`);
  if (!isDurable(kind)) {
    console.log('It forgets when its process ends: clients that come back get a snapshot instead.');
  }
  try {
    await smoke.run(kind === 'redis' ? 2 : 1);
  } catch (error) {
    if (stop.aborted) return false;
    console.error(smoke.ended ? 'not done in time' : error);
  } finally {
    clearTimeout(timer);
    await smoke.close();
    await forgetTopics(ownTopics);
  }
  const { line, passed } = isDurable(kind) ? reportOnLog(smoke) : reportOnSnapshots(smoke);
  console.log(line);
  return passed;
}

class Smoke implements SmokeRun {
  readonly cluster: Cluster;
  readonly placed: string[] = [];
  readonly clients: SmokeClient[] = [];
  killed = 0;
  readonly #end = new AbortController();
  readonly #changes = new EventTarget();
  readonly #port: number;
  readonly #trpc: TRPCClient<OrdersRouter>;
  #proxy: TcpProxy | undefined;

  /** `port` is the one that the proxy will listen on. */
  constructor(cluster: Cluster, port: number) {
    this.cluster = cluster;
    this.#port = port;
    const retry = { retry: () => !this.ended, retryDelayMs: () => PLACE_AGAIN_MS };
    const links = [retryLink(retry), httpLink({ url: `http://127.0.0.1:${port}/trpc` })];
    this.#trpc = createTRPCClient<OrdersRouter>({ links });
  }

  get ended(): boolean {
    return this.#end.signal.aborted;
  }

  /** Gives up whatever the run waits for. */
  end(): void {
    this.#end.abort();
  }

  async run(instances: number): Promise<void> {
    const all = Array.from({ length: instances }, () => this.cluster.add());
    const first = (await all[0]) as Instance;
    // With both clients on the first, its death makes both move.
    let targets: readonly Instance[] = [first];
    const port = this.#port;
    this.#proxy = await startProxy(port, () => targets);
    const changed = (): void => void this.#changes.dispatchEvent(new Event('change'));
    this.clients.push(new SmokeClient('ws', port, changed), new SmokeClient('sse', port, changed));
    await this.#all((client) => client.attached === 1);
    console.log(`both clients follow ${first.name}`);
    targets = await Promise.all(all);

    await this.#place(ORDERS.before);
    const meanwhile = this.#place(ORDERS.meanwhile);
    // Orders are under way when it dies, on either instance.
    await first.kill();
    this.killed += 1;
    await meanwhile;
    console.log(`${this.placed.length} orders placed; waiting for the clients to come back`);
    await this.#all((client) => client.attached + client.snapshots.length === 2);
    await this.#place(ORDERS.after - 1);
    // The last one by itself: whatever was to come before it has come.
    await this.#place(1);
    await this.#all((client) => client.received.at(-1) === this.placed.at(-1));
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.close();
    await this.#proxy?.close();
    await this.cluster.close();
  }

  /** Places orders, some at a time, each until it is placed: its id makes a repeated try harmless. */
  async #place(count: number): Promise<void> {
    let left = count;
    const placer = async (): Promise<void> => {
      while (left-- > 0) {
        const order = { id: randomUUID(), item: 'flat white', quantity: 1 };
        this.placed.push(order.id);
        await this.#trpc.orders.place.mutate(order, { signal: this.#end.signal });
      }
    };
    await Promise.all(Array.from({ length: PLACERS }, placer));
  }

  /** Waits until something holds for every client. */
  #all(holds: (client: SmokeClient) => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = new AbortController();
      const options = { signal: done.signal };
      const look = (): void => {
        const failed = this.clients.find(({ error }) => error !== undefined);
        if (failed) reject(new Error(`${failed.transport}: ${failed.error}`));
        else if (this.ended) reject(new Error('given up'));
        else if (this.clients.every(holds)) resolve();
        else return;
        done.abort();
      };
      this.#changes.addEventListener('change', look, options);
      this.#end.signal.addEventListener('abort', look, options);
      look();
    });
  }
}
