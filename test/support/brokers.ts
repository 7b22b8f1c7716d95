import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Broker, Meter } from '@brokerfeed/core';
import { memoryBroker } from '@brokerfeed/core/memory';
import { journalBroker } from '@brokerfeed/journal';
import { redisBroker } from '@brokerfeed/redis';
import { Redis } from 'ioredis';
import { inject } from 'vitest';

/** The brokers that a promise to clients is tried on. */
export const BROKERS = ['memory', 'journal', 'redis'] as const;
export type BrokerName = (typeof BROKERS)[number];

const OPEN: Record<BrokerName, (meter: Meter) => Promise<Broker>> = {
  memory: async (meter) => memoryBroker({ meter }),
  async journal(meter) {
    const dir = await mkdtemp(join(tmpdir(), 'brokerfeed-test-'));
    const broker = journalBroker({ dir, meter });
    return whenClosed(broker, () => rm(dir, { recursive: true, force: true }));
  },
  async redis(meter) {
    const client = new Redis(inject('redisUrl'));
    const prefix = `test-${crypto.randomUUID()}`;
    const broker = redisBroker({ client, prefix, meter });
    return whenClosed(broker, async () => {
      const keys = await client.keys(`*${prefix}*`);
      if (keys.length > 0) await client.unlink(keys);
      await client.quit();
    });
  },
};

/** Opens a broker on an empty store of its own, which goes with the scope. */
export function openBroker(name: BrokerName, meter: Meter): Promise<Broker> {
  return OPEN[name](meter);
}

function whenClosed(broker: Broker, remove: () => Promise<void>): Broker {
  let closed: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closed ??= broker.close().then(remove);
    return closed;
  };
  return { ...broker, close, [Symbol.asyncDispose]: close };
}
