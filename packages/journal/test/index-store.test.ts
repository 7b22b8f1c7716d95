import { expect, test } from 'vitest';
import { Caches } from '../src/caches.ts';
import { IndexStore } from '../src/index-store.ts';
import { Layout } from '../src/layout.ts';
import { Segment } from '../src/segment.ts';
import { SegmentFiles } from '../src/segment-files.ts';
import { SegmentIndex } from '../src/segment-index.ts';
import { RecordedFs } from './recorded-fs.ts';
import { eventLog } from './support-logger.ts';

const MAX_BYTES = 1024 * 1024;

/** The indexes of some sealed segments, and those that the store has of them afterwards. */
async function released(
  segments: number,
  fill: (index: SegmentIndex) => void,
): Promise<{ given: SegmentIndex[]; kept: SegmentIndex[] }> {
  const fs = new RecordedFs();
  const layout = new Layout('/journal');
  const { logger } = eventLog();
  const caches = new Caches(fs, layout, logger);
  const store = new IndexStore(
    new SegmentFiles(fs, layout, () => true),
    caches,
    layout,
    logger,
    MAX_BYTES,
  );
  const sealed = Array.from({ length: segments }, (_, at) => {
    const segment = new Segment(at + 1, 1);
    const index = new SegmentIndex();
    fill(index);
    segment.bytes = 1;
    index.covered = 1;
    segment.index = index;
    caches.saveIndex(segment, index);
    return { segment, index };
  });
  for (const { segment } of sealed) store.release(segment);
  const given = sealed.map(({ index }) => index);
  const kept: SegmentIndex[] = [];
  // The newest first: to look at one that is gone brings it back, and another goes.
  for (const { segment } of sealed.reverse()) kept.unshift(await store.of(segment));
  return { given, kept };
}

test('indexes of segments with many topics are let go by the memory that they take, and no more of them than need be', async () => {
  const topics = 2_000;
  const { given, kept } = await released(4, (index) => {
    for (let topic = 0; topic < topics; topic += 1)
      index.add(`epoch${String(topic).padStart(7, '0')}`, 1, topic);
  });
  expect(kept.map((index, at) => index === given[at])).toEqual([false, true, true, true]);
  expect(kept[0]?.commits).toBe(topics);
});

test('those of segments with few topics stay', async () => {
  const { given, kept } = await released(30, (index) => {
    for (let ordinal = 1; ordinal <= 2_000; ordinal += 1) index.add('epoch0000000', ordinal, 1);
  });
  expect(kept.map((index, at) => index === given[at])).toEqual(given.map(() => true));
});
