export { type MemoryBrokerOptions, memoryBroker } from './memory-broker.ts';
export { type MemoryStore, memoryStore } from './memory-store.ts';
