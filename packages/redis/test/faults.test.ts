import { testFaults } from '@brokerfeed/conformance';
import { RedisFaultStore } from '../../../test/support/redis-fault-store.ts';
import {
  APPENDS,
  COMMANDS,
  PAUSES,
  PROMOTIONS,
  RESTARTS,
  SILENCES,
  TRIMS,
} from '../../../test/support/redis-faults.ts';

testFaults('faults of the redis broker', () => RedisFaultStore.start(), {
  ...RESTARTS,
  ...PROMOTIONS,
  ...SILENCES,
  ...COMMANDS,
  ...TRIMS,
  ...PAUSES,
  ...APPENDS,
});
