import type { Position } from '@brokerfeed/core';
import { JournalState } from './journal-state.ts';
import { encodeLine, scanLines } from './line.ts';
import { FORMAT } from './record.ts';
import { Segment } from './segment.ts';
import { TopicState } from './topic-state.ts';

/*
 * The whole state at one place of the log. A cache: it says nothing that scanning the segments would not say.
 * FORMAT.md has its bytes.
 */

type SegmentRow = readonly [
  first: number,
  boot: number,
  bytes: number,
  last: number,
  entries: number,
  firstAt: number,
  lastAt: number,
];
type TopicRow = readonly [
  name: string,
  epoch: string,
  floor: number,
  floorBoot: number,
  last: number,
  home: number,
  runs: readonly number[],
];
type PositionRow = readonly [epoch: string, id: string, ordinal: number];
type KeyRow = readonly [
  scope: string,
  digest: string,
  at: number,
  sequence: number,
  positions: readonly PositionRow[],
];

interface CheckpointText {
  readonly format: number;
  readonly journal: string;
  readonly segment: number;
  readonly offset: number;
  readonly next: number;
  readonly salt: string;
  readonly segments: readonly SegmentRow[];
  readonly topics: readonly TopicRow[];
  readonly keys: readonly KeyRow[];
}

/** A state and the place in the log that it is of. */
export interface Checkpoint {
  readonly state: JournalState;
  readonly segment: number;
  readonly offset: number;
}

/** Prints the state. Its newest segment has `bytes` of the log. */
export function encodeCheckpoint(state: JournalState, now: number): Buffer {
  const newest = state.segments.at(-1);
  const places = new Map(state.segments.map((segment, place) => [segment, place]));
  const text: CheckpointText = {
    format: FORMAT,
    journal: state.journal,
    segment: newest?.first ?? 0,
    offset: newest?.bytes ?? 0,
    next: state.next,
    salt: state.salt,
    segments: state.segments.map((segment) => [
      segment.first,
      segment.boot,
      segment.bytes,
      segment.last,
      segment.entries,
      segment.firstAt,
      segment.lastAt,
    ]),
    topics: Array.from(state.topics.values())
      .filter((topic) => topic.last > 0)
      .map((topic) => topicRow(topic, places)),
    keys: Array.from(state.keys.entries(now), ([scope, keyed]) => [
      scope,
      keyed.digest,
      keyed.at,
      keyed.sequence,
      keyed.positions.map(({ epoch, id, ordinal }) => [epoch, id, ordinal] as const),
    ]),
  };
  return encodeLine(JSON.stringify(text));
}

/** Reads a checkpoint, or answers undefined where it is not whole or not of this journal. */
export function decodeCheckpoint(
  file: Buffer,
  journal: string,
  keys: { windowMs: number; maxKeys: number },
): Checkpoint | undefined {
  let json: string | undefined;
  scanLines(file, (text) => {
    json = text;
    return false;
  });
  if (json === undefined) return undefined;
  const text = JSON.parse(json) as CheckpointText;
  if (text.format !== FORMAT || text.journal !== journal) return undefined;
  const state = new JournalState(journal, keys);
  state.next = text.next;
  state.salt = text.salt;
  state.segments.push(...text.segments.map(segmentOf));
  for (const row of text.topics) state.topics.set(row[0], topicOf(row, state.segments));
  for (const [scope, digest, at, sequence, rows] of text.keys) {
    state.keys.remember(scope, { digest, at, sequence, positions: rows.map(positionOf) });
  }
  return { state, segment: text.segment, offset: text.offset };
}

function topicRow(topic: TopicState, places: ReadonlyMap<Segment, number>): TopicRow {
  const runs: number[] = [];
  for (const run of topic.runs) runs.push(places.get(run.segment) as number, run.first);
  const { name, epoch, floor, floorBoot, last, home } = topic;
  return [name, epoch, floor, floorBoot, last, home, runs];
}

function topicOf(row: TopicRow, segments: readonly Segment[]): TopicState {
  const [name, epoch, floor, floorBoot, last, home, runs] = row;
  const topic = new TopicState(name, epoch);
  topic.restore({ floor, floorBoot, last, home });
  for (let at = 0; at < runs.length; at += 2) {
    const segment = segments[runs[at] as number];
    if (segment !== undefined) topic.runs.push({ segment, first: runs[at + 1] as number });
  }
  return topic;
}

function segmentOf([first, boot, bytes, last, entries, firstAt, lastAt]: SegmentRow): Segment {
  const segment = new Segment(first, boot);
  return Object.assign(segment, { bytes, last, entries, firstAt, lastAt });
}

function positionOf([epoch, id, ordinal]: PositionRow): Position {
  return Object.freeze({ epoch, id, ordinal });
}
