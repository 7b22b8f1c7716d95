/** The load process of a run: clients and publisher. Its arguments are the system, Redis, the server and a {@link Load}. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LoadApi } from '../harness/load-api.ts';
import { loadSystem, type Subscription } from '../harness/system.ts';
import { type Absent, miss } from './catch-up.ts';
import { Clients } from './clients.ts';
import { payloads, type Shape } from './payload.ts';
import { Saturation } from './saturation.ts';
import { steady } from './steady.ts';

/** What the entries of a run look like. */
export interface Load {
  readonly bytes: number;
  readonly shape: Shape;
}

/** How often an entry is published to clients that may not be subscribed yet. */
const PRIME_TRIES = 30;

const [name = '', redisUrl = '', url = '', load = ''] = process.argv.slice(2);
const { bytes, shape } = JSON.parse(load) as Load;
const system = await loadSystem(name);
const publisher = system.publisher(redisUrl);
const clients = new Clients(url, system.wire);
const payload = payloads(bytes, shape);
let topics = 1;
let lastSeq = 0;
let saturation: Saturation | undefined;
let absent: Absent | undefined;

const topicOf = (index: number): string => `orders-${index % topics}`;
const subscriptionOf = (index: number): Subscription => ({ topic: topicOf(index) });
const next = (): { seq: number; text: string } => {
  lastSeq += 1;
  return { seq: lastSeq, text: payload(lastSeq) };
};

const api: LoadApi = {
  async connect(argument) {
    topics = argument.topics;
    clients.stride = topics;
    await clients.connect(argument.count, subscriptionOf);
  },
  async prime() {
    for (let tries = 0; tries < PRIME_TRIES; tries += 1) {
      await publisher.publish(topicOf(0), next().text);
      for (let waits = 0; waits < 100; waits += 1) {
        if (clients.all.every((client) => client.count > 0)) {
          await sleep(300);
          clients.forgive();
          return;
        }
        await sleep(10);
      }
    }
    const got = clients.all.filter((client) => client.count > 0).length;
    throw new Error(`${got} of ${clients.count} clients got an entry`);
  },
  tally: async () => clients.tally(),
  async saturate({ window, burst }) {
    const options = { topic: topicOf(0), window, burst, next: () => next().text };
    saturation = new Saturation(clients, publisher, options);
  },
  stop: async () => ({ missing: (await saturation?.stop()) ?? 0 }),
  steady({ rate, seconds }) {
    const publish = (): number => {
      const { seq, text } = next();
      // An entry that is not written is not delivered, and shows as missing.
      publisher.publish(topicOf(seq), text).catch(() => {});
      return seq;
    };
    const deliveriesPerEntry = topics > 1 ? 1 : clients.count;
    return steady(clients, { rate, seconds, publish, deliveriesPerEntry });
  },
  async miss({ entries }) {
    absent = await miss(clients, system.wire, publisher, topicOf(0), next, entries);
  },
  async resume({ clients: count }) {
    if (absent === undefined) throw new Error('nobody was away');
    return absent.resume(clients, count);
  },
};

async function answer(message: unknown): Promise<void> {
  const { id, name, argument } = message as { id: number; name: keyof LoadApi; argument: never };
  try {
    process.send?.({ id, value: await api[name](argument) });
  } catch (error) {
    process.send?.({ id, error: String((error as Error).stack) });
  }
}

process.on('message', (message) => void answer(message));
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
