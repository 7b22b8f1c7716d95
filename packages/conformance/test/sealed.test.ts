import { randomBytes } from 'node:crypto';
import { type BrokerHarness, testBroker, testFeed } from '@brokerfeed/conformance';
import { sealed } from '@brokerfeed/core';
import { memoryBroker, memoryStore } from '@brokerfeed/core/memory';

// A sealed broker is a broker: whatever it stands on, nothing but what the store sees may change.
testBroker('sealed memory broker', harness, { runs: 200 });
testFeed('feeds on a sealed memory broker', harness, { runs: 50 });

async function harness(): Promise<BrokerHarness> {
  const store = memoryStore();
  const keys = [{ id: 'test', key: randomBytes(32) }];
  const broker = sealed(memoryBroker({ store }), { keys });
  return {
    broker,
    peer: async () => sealed(memoryBroker({ store }), { keys }),
    trim: async (topic, keepCommits) => store.trim(topic, keepCommits),
    drop: async (topic) => store.drop(topic),
    [Symbol.asyncDispose]: () => broker.close(),
  };
}
