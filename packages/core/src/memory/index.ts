export { type MemoryBrokerOptions, memoryBroker, type Retention } from './memory-broker.ts';
export { type MemoryStore, memoryStore } from './memory-store.ts';
