export type { BrokerHarness } from './broker-harness.ts';
export { type TestBrokerOptions, testBroker } from './test-broker.ts';
export { type TestFeedOptions, testFeed } from './test-feed.ts';
