import { testBroker } from '@brokerfeed/conformance';
import { redisHarness } from './harness.ts';

testBroker('redis broker', redisHarness, { runs: 100 });
