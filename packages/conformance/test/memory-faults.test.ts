import { type FaultStore, testFaults } from '@brokerfeed/conformance';
import { type MemoryStore, memoryBroker, memoryStore } from '@brokerfeed/core/memory';

interface Store extends FaultStore {
  readonly topics: MemoryStore;
}

testFaults<Store>(
  'faults of the memory broker',
  async () => {
    const topics = memoryStore();
    return {
      topics,
      open: async () => memoryBroker({ store: topics }),
      async [Symbol.asyncDispose]() {},
    };
  },
  {
    'nothing at all': { expected: 'invisible', inject: async (_, scene) => scene.append(50) },
    'a topic is deleted while it is tailed': {
      expected: ['epoch'],
      inject: async ({ topics }, { topic }) => topics.drop(topic),
    },
    'a topic is deleted twice': {
      expected: ['epoch'],
      async inject({ topics }, scene) {
        topics.drop(scene.topic);
        await scene.append(5);
        topics.drop(scene.topic);
      },
    },
    'a topic is trimmed past those who are away': {
      expected: ['trimmed'],
      told: 'missing',
      async inject({ topics }, scene) {
        await scene.append(50);
        await scene.delivered();
        topics.trim(scene.topic, 5);
      },
    },
    'a topic is trimmed past those who are connected and take nothing': {
      expected: ['trimmed'],
      told: 'missing',
      async inject({ topics }, scene) {
        const resume = scene.pause();
        await scene.append(50);
        await scene.delivered();
        topics.trim(scene.topic, 5);
        resume();
      },
    },
  },
);
