import { expect, test } from 'vitest';
import { type OpenTelemetryMeter, openTelemetryMeter } from './open-telemetry.ts';

/** The part of OpenTelemetry's meter that is used, which notes what it is asked for. */
function notedMeter(): { meter: OpenTelemetryMeter; notes: unknown[] } {
  const notes: unknown[] = [];
  const meter: OpenTelemetryMeter = {
    createCounter(name, options) {
      notes.push(['counter', name, options]);
      return { add: (by, attributes) => notes.push([name, by, attributes]) };
    },
    createHistogram(name, options) {
      notes.push(['histogram', name, options]);
      return { record: (value, attributes) => notes.push([name, value, attributes]) };
    },
  };
  return { meter, notes };
}

test('each instrument is made once, at its first measurement', () => {
  const { meter, notes } = notedMeter();
  const ours = openTelemetryMeter(meter);
  expect(notes).toEqual([]);
  ours.count('brokerfeed.feed.resumes', 1, { outcome: 'fresh' });
  ours.count('brokerfeed.feed.resumes', 2, { outcome: 'trimmed' });
  ours.record('brokerfeed.topic.retained', 5_000);
  ours.record('brokerfeed.tail.lag', 3);
  expect(notes).toEqual([
    ['counter', 'brokerfeed.feed.resumes', {}],
    ['brokerfeed.feed.resumes', 1, { outcome: 'fresh' }],
    ['brokerfeed.feed.resumes', 2, { outcome: 'trimmed' }],
    ['histogram', 'brokerfeed.topic.retained', { unit: 's' }],
    ['brokerfeed.topic.retained', 5_000, undefined],
    ['histogram', 'brokerfeed.tail.lag', { unit: '1' }],
    ['brokerfeed.tail.lag', 3, undefined],
  ]);
});
