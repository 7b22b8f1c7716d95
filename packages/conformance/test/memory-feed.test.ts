import { testFeed } from '@brokerfeed/conformance';
import { memoryBroker, memoryStore } from '@brokerfeed/core/memory';

testFeed('feeds on the memory broker', async () => {
  const store = memoryStore();
  const broker = memoryBroker({ store });
  return {
    broker,
    peer: async () => memoryBroker({ store }),
    trim: async (topic, keepCommits) => store.trim(topic, keepCommits),
    drop: async (topic) => store.drop(topic),
    [Symbol.asyncDispose]: () => broker.close(),
  };
});
