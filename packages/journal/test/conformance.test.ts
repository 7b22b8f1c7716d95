import { testBroker, testFeed } from '@brokerfeed/conformance';
import { journalHarness } from './harness.ts';

const SMALL_SEGMENT_BYTES = 16 * 1024;

testBroker('journal', () => journalHarness({ fsync: 'never' }));

// Every commit is synced, and a segment holds a few dozen of them: the laws meet the seams between segments.
testBroker(
  'journal, synced, in small segments',
  () => journalHarness({ segmentBytes: SMALL_SEGMENT_BYTES }),
  { runs: 50 },
);

testFeed('feeds on the journal', () => journalHarness({ fsync: 'never' }));

testFeed(
  'feeds on the journal, synced, in small segments',
  () => journalHarness({ segmentBytes: SMALL_SEGMENT_BYTES }),
  { runs: 50 },
);
