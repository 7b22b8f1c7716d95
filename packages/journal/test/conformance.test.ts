import { randomBytes } from 'node:crypto';
import { type BrokerHarness, testBroker, testFeed } from '@brokerfeed/conformance';
import { sealed } from '@brokerfeed/core';
import { journalHarness } from './harness.ts';

const SMALL_SEGMENT_BYTES = 16 * 1024;
/** Each append waits for the file system: the thousands of histories are for the memory broker, and for a soak. */
const RUNS = 200;

testBroker('journal', () => journalHarness({ fsync: 'never' }), { runs: RUNS });

// Every commit is synced, and a segment holds a few dozen of them: the laws meet the seams between segments.
testBroker(
  'journal, synced, in small segments',
  () => journalHarness({ segmentBytes: SMALL_SEGMENT_BYTES }),
  { runs: 50 },
);

testBroker('sealed journal', sealedHarness, { runs: 50 });

testFeed('feeds on the journal', () => journalHarness({ fsync: 'never' }), { runs: RUNS });

testFeed(
  'feeds on the journal, synced, in small segments',
  () => journalHarness({ segmentBytes: SMALL_SEGMENT_BYTES }),
  { runs: 50 },
);

async function sealedHarness(): Promise<BrokerHarness> {
  const keys = [{ id: 'test', key: randomBytes(32) }];
  const { broker, peer, ...harness } = await journalHarness({
    fsync: 'never',
    maxEntryBytes: 1024 ** 2,
  });
  return {
    ...harness,
    broker: sealed(broker, { keys }),
    peer: async () => sealed(await peer(), { keys }),
  };
}
