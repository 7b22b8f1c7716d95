import { randomBytes } from 'node:crypto';
import { testBroker } from '@brokerfeed/conformance';
import { sealed } from '@brokerfeed/core';
import { redisHarness } from './harness.ts';

const keys = [{ id: 'test', key: randomBytes(32) }];

testBroker('redis broker', () => redisHarness(), { runs: 100 });
testBroker('sealed redis broker', () => redisHarness((broker) => sealed(broker, { keys })), {
  runs: 20,
});
