import {
  BrokerError,
  type Commit,
  type Entry,
  type Headers,
  headerBag,
  type Loss,
  NO_HEADERS,
  type Page,
  type Position,
  type Start,
} from '@brokerfeed/core';
import { damaged } from './damage.ts';
import type { IndexStore } from './index-store.ts';
import type { JournalState } from './journal-state.ts';
import type { Layout } from './layout.ts';
import { lineText } from './line.ts';
import { isCommit, parseRecord, type TopicCommit } from './record.ts';
import type { Segment } from './segment.ts';
import type { SegmentFiles } from './segment-files.ts';
import type { SegmentIndex } from './segment-index.ts';
import { SegmentReader } from './segment-reader.ts';
import type { TopicState } from './topic-state.ts';

/** The most bytes of lines in one page; one commit is always read. */
const MAX_PAGE_BYTES = 2 * 1024 * 1024;

/** Consecutive commits of a topic in one segment. */
interface Stretch {
  readonly segment: Segment;
  readonly from: number;
  readonly to: number;
}

/** Reads pages. What a page holds is decided at once; the bytes of it are kept from being removed, and read afterwards. */
export class PageReader {
  readonly #state: JournalState;
  readonly #files: SegmentFiles;
  readonly #indexes: IndexStore;
  readonly #layout: Layout;
  readonly #boot: number;

  constructor(
    state: JournalState,
    files: SegmentFiles,
    indexes: IndexStore,
    layout: Layout,
    boot: number,
  ) {
    this.#state = state;
    this.#files = files;
    this.#indexes = indexes;
    this.#layout = layout;
    this.#boot = boot;
  }

  async page(name: string, start: Start, limit: number): Promise<Page> {
    // Without a file to read there is nothing to wait for, and a caller who asks in a loop would keep the writer from its turn.
    if (limit === 0 || this.#isAtTip(name, start)) await turn();
    const topic = this.#state.topic(name);
    const bounds = topic.bounds();
    const from = start === 'earliest' ? bounds.first : start === 'latest' ? bounds.last : start;
    const verdict = verdictOf(topic, from, this.#boot);
    if (verdict !== 'ok') return { verdict, bounds };
    const end = Math.min(from.ordinal + limit, topic.last);
    const commits =
      end > from.ordinal
        ? await this.#read(topic, from, stretches(topic, from.ordinal + 1, end))
        : [];
    const last = commits.at(-1)?.position.ordinal ?? from.ordinal;
    return { verdict, from, commits, atTip: last === bounds.last.ordinal, bounds };
  }

  #isAtTip(name: string, start: Start): boolean {
    const { last, floor } = this.#state.topic(name);
    if (start === 'latest') return true;
    return (start === 'earliest' ? floor : start.ordinal) >= last;
  }

  async #read(
    topic: TopicState,
    from: Position,
    planned: readonly Stretch[],
  ): Promise<readonly Commit[]> {
    for (const { segment } of planned) this.#files.pin(segment);
    try {
      const commits: Commit[] = [];
      let previous = from;
      let bytes = 0;
      for (const stretch of planned) {
        const index = await this.#indexes.of(stretch.segment);
        const reader = this.#readerOf(stretch, index, topic);
        for (let ordinal = stretch.from; ordinal <= stretch.to; ordinal += 1) {
          const line = await reader.line(ordinal);
          bytes += line.end - line.start;
          if (bytes > MAX_PAGE_BYTES && commits.length > 0) return commits;
          const found = commitIn(line, topic.name, ordinal, reader.path);
          const position = positionIn(stretch.segment, topic.epoch, ordinal);
          commits.push(makeCommit(previous, position, found));
          previous = position;
        }
      }
      return commits;
    } finally {
      for (const { segment } of planned) this.#files.unpin(segment);
    }
  }

  #readerOf({ segment, from, to }: Stretch, index: SegmentIndex, topic: TopicState): SegmentReader {
    const run = index.run(topic.epoch);
    const path = this.#layout.segment(segment.first);
    if (run === undefined || from < run.first || to >= run.first + run.offsets.length) {
      throw damaged(path, 0, `commits ${from} to ${to} of a topic are not in the segment's index`);
    }
    return new SegmentReader(this.#files.file(segment), path, run, to);
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Decides whether all that follows a position is here. Epoch first: in another one, ordinals mean nothing. */
function verdictOf(topic: TopicState, at: Position, boot: number): 'ok' | Loss {
  if (at.epoch !== topic.epoch) return 'epoch';
  // An opening that is over wrote all that it will ever write: what it gave out and is not here was lost.
  if (at.ordinal > topic.last) return namesOtherBoot(at.id, boot) ? 'forked' : 'ahead';
  if (at.ordinal < topic.floor) return 'trimmed';
  return at.id === topic.position(at.ordinal).id ? 'ok' : 'forked';
}

function namesOtherBoot(id: string, boot: number): boolean {
  const dash = id.indexOf('-');
  return dash >= 0 && id.slice(dash + 1) !== String(boot);
}

/** Where the commits of a range are. */
function stretches(topic: TopicState, from: number, to: number): Stretch[] {
  const planned: Stretch[] = [];
  for (let at = topic.runOf(from), next = from; next <= to; at += 1) {
    const run = topic.runs[at];
    if (run === undefined || run.first > next) {
      throw new BrokerError('DAMAGED', `commit ${next} of a topic is in no segment`);
    }
    const end = Math.min(to, (topic.runs[at + 1]?.first ?? Number.POSITIVE_INFINITY) - 1);
    planned.push({ segment: run.segment, from: next, to: end });
    next = end + 1;
  }
  return planned;
}

function positionIn(segment: Segment, epoch: string, ordinal: number): Position {
  return Object.freeze({ epoch, id: `${ordinal}-${segment.boot}`, ordinal });
}

function commitIn(
  line: {
    readonly buffer: Buffer;
    readonly start: number;
    readonly end: number;
    readonly at: number;
  },
  topic: string,
  ordinal: number,
  path: string,
): TopicCommit {
  const text = lineText(line.buffer, line.start, line.end);
  if (text === undefined) throw damaged(path, line.at, 'the line is not whole');
  const record = parseRecord(text);
  const found = isCommit(record)
    ? record.commits.find((commit) => commit.topic === topic && commit.ordinal === ordinal)
    : undefined;
  if (found === undefined) {
    throw damaged(path, line.at, `commit ${ordinal} of the topic should stand here`);
  }
  return found;
}

/** Makes a commit as readers get it. Every reader may be handed the same one, so it is frozen. */
export function makeCommit(previous: Position, position: Position, commit: TopicCommit): Commit {
  const headers = bagOf(commit.headers);
  const entries = commit.values.map((value): Entry => Object.freeze({ value, headers }));
  return Object.freeze({ previous, position, entries: Object.freeze(entries) });
}

function bagOf(headers: Headers | undefined): Headers {
  if (headers === undefined || headers === NO_HEADERS) return NO_HEADERS;
  return Object.isFrozen(headers) ? headers : headerBag(Object.entries(headers));
}
