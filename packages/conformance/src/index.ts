export type { BrokerHarness } from './broker-harness.ts';
export type { Fault, FaultScene, FaultStore, Faults } from './faults-harness.ts';
export type { FaultLedger } from './faults-judge.ts';
export { FaultRecord, type FaultSnapshot, type FaultValue } from './faults-record.ts';
export type { FaultSubscriber } from './faults-subscriber.ts';
export { FaultWorld, type FaultWorldOptions } from './faults-world.ts';
export { type TestBrokerOptions, testBroker } from './test-broker.ts';
export { type TestFaultsOptions, testFaults } from './test-faults.ts';
export { type TestFeedOptions, testFeed } from './test-feed.ts';
