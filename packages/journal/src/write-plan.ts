import type { Entry } from '@brokerfeed/core';
import type { AppendJob, Control, TopicWrite } from './append-job.ts';
import type { JournalState } from './journal-state.ts';
import type { LineBuffer } from './line-buffer.ts';
import {
  type CommitRecord,
  type ControlRecord,
  FORMAT,
  type JournalRecord,
  printCommit,
  type TopicCommit,
} from './record.ts';
import type { Segment } from './segment.ts';
import { floorUnder } from './topic-retention.ts';
import type { TopicState } from './topic-state.ts';

/** A topic that is written to. */
interface Touched {
  readonly topic: TopicState;
  /** Its name in JSON. */
  readonly text: string;
  /** The ordinal that was given out last before this write. */
  readonly before: number;
}

/** Prints the records of one write. Ordinals are given out here, and become true when the write is applied. */
export class WritePlan {
  readonly records: JournalRecord[] = [];
  readonly #state: JournalState;
  readonly #segment: Segment;
  readonly #lines: LineBuffer;
  readonly #now: number;
  /** Where the write begins in the segment. */
  readonly #at: number;
  readonly #touched = new Map<string, Touched>();
  #durable: number | undefined;
  #next: number;

  constructor(
    state: JournalState,
    segment: Segment,
    lines: LineBuffer,
    options: { now: number; durable: number },
  ) {
    this.#state = state;
    this.#segment = segment;
    this.#lines = lines;
    this.#now = options.now;
    this.#at = segment.bytes;
    this.#durable = options.durable;
    this.#next = state.next;
    lines.clear();
    if (segment.bytes === 0) this.#addHeader();
  }

  /** The lines of the write. */
  bytes(): Buffer {
    return this.#lines.bytes();
  }

  /** Where a record stands in the segment. Known once `bytes` was called. */
  offset(index: number): number {
    const { starts } = this.#lines;
    const header = starts.length - this.records.length;
    return this.#at + (starts[header + index] as number);
  }

  addCommit({ writes, key, all }: AppendJob): void {
    const record: CommitRecord = {
      seq: this.#next++,
      at: this.#now,
      durable: this.#takeDurable(),
      key,
      all: all ? true : undefined,
      commits: writes.map(this.#commit),
    };
    this.#add(record, printCommit(record, this.#textOf));
  }

  addControl(control: Control): void {
    const record = {
      seq: this.#next++,
      at: this.#now,
      durable: this.#takeDurable(),
      ...control,
    } as ControlRecord;
    this.#add(record, JSON.stringify(record));
  }

  /** Takes the ordinals back: the write failed. */
  withdraw(): void {
    for (const { topic, before } of this.#touched.values()) {
      topic.planned = before;
      this.#state.unkeep(topic);
    }
  }

  /** With the next one, made once for all commits of the write. */
  readonly #commit = (write: TopicWrite): TopicCommit => {
    const { topic } = this.#touch(write.topic);
    const named = topic.planned > topic.last || topic.runs.at(-1)?.segment === this.#segment;
    topic.planned += 1;
    const { retention } = write;
    return {
      topic: write.topic,
      ordinal: topic.planned,
      epoch: named ? undefined : topic.epoch,
      after: named ? undefined : topic.bootOf(topic.last),
      floor: retention === undefined ? undefined : floorUnder(topic, retention, this.#now),
      values: write.entries.map(valueIn),
      headers: write.headers,
    };
  };

  readonly #textOf = (name: string): string => this.#touch(name).text;

  #touch(name: string): Touched {
    const known = this.#touched.get(name);
    if (known !== undefined) return known;
    const topic = this.#state.keep(name);
    const touched = { topic, text: JSON.stringify(name), before: topic.planned };
    this.#touched.set(name, touched);
    return touched;
  }

  #add(record: JournalRecord, json: string): void {
    this.records.push(record);
    this.#lines.add(json);
  }

  #addHeader(): void {
    const { first, boot } = this.#segment;
    const { journal, salt } = this.#state;
    const header = { journal, format: FORMAT, first, boot, salt, at: this.#now };
    this.#lines.add(JSON.stringify(header));
  }

  #takeDurable(): number | undefined {
    const durable = this.#durable;
    this.#durable = undefined;
    return durable;
  }
}

function valueIn(entry: Entry): string {
  return entry.value;
}
