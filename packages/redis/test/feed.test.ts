import { testFeed } from '@brokerfeed/conformance';
import { redisHarness } from './harness.ts';

testFeed('feeds on the redis broker', () => redisHarness(), { runs: 100 });
