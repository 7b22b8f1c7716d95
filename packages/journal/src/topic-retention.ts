import type { Retention } from '@brokerfeed/core';
import type { TopicState } from './topic-state.ts';

/** A commit may stay longer than was asked for by so small a part of its age. */
const MARKS_PER_AGE = 16;

/** Says that everything up to an ordinal was there at a time. */
export interface AgeMark {
  readonly ordinal: number;
  readonly at: number;
}

/**
 * Answers the newest ordinal that the retention of an append removes, or undefined where nothing goes. The append has its
 * own ordinal already: `topic.planned`.
 */
export function floorUnder(
  topic: TopicState,
  { maxEntries, maxAgeMs }: Retention,
  now: number,
): number | undefined {
  const tooMany = maxEntries === undefined ? 0 : topic.planned - maxEntries;
  const tooOld = maxAgeMs === undefined ? 0 : olderThan(topic, maxAgeMs, now);
  const floor = Math.max(tooMany, tooOld);
  return floor > topic.floor ? floor : undefined;
}

/**
 * Answers the newest ordinal that is known to be older. The time of each commit is in its record only: what is known here is
 * when the segments ended, and what stood there at the appends of this process that asked.
 */
function olderThan(topic: TopicState, maxAgeMs: number, now: number): number {
  const { floor, last, runs } = topic;
  const oldest = now - maxAgeMs;
  let old = 0;
  for (let at = topic.runOf(floor + 1); at < runs.length; at += 1) {
    if ((runs[at]?.segment.lastAt ?? now) >= oldest) break;
    old = (runs[at + 1]?.first ?? last + 1) - 1;
  }
  topic.ageMarks ??= [];
  const marks = topic.ageMarks;
  while (marks[0] !== undefined && marks[0].ordinal <= floor) marks.shift();
  for (const mark of marks) if (mark.at < oldest) old = Math.max(old, mark.ordinal);
  const newest = marks.at(-1) ?? { ordinal: floor, at: Number.NEGATIVE_INFINITY };
  // Of what is visible, not of this append: that one may fail.
  if (last > newest.ordinal && now - newest.at >= maxAgeMs / MARKS_PER_AGE) {
    marks.push({ ordinal: last, at: now });
  }
  return old;
}
