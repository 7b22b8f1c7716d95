import type { AppendJob, Control } from './append-job.ts';
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
import type { TopicState } from './topic-state.ts';

/** A record with its place in the write. */
export interface PlannedRecord {
  readonly record: JournalRecord;
  readonly offset: number;
}

/** Prints the records of one write. Ordinals are given out here, and become true when the write is applied. */
export class WritePlan {
  readonly records: PlannedRecord[] = [];
  readonly #state: JournalState;
  readonly #segment: Segment;
  readonly #lines: LineBuffer;
  readonly #now: number;
  /** Where the write begins in the segment. */
  readonly #at: number;
  /** The topics that are written to, and the ordinals given out before. */
  readonly #touched = new Map<TopicState, number>();
  #durable: number | undefined;
  #next: number;

  constructor(
    state: JournalState,
    segment: Segment,
    lines: LineBuffer,
    options: { now: number; durable: number; at: number; next: number },
  ) {
    this.#state = state;
    this.#segment = segment;
    this.#lines = lines;
    this.#now = options.now;
    this.#at = options.at;
    this.#durable = options.durable;
    this.#next = options.next;
    lines.clear();
    if (options.at === 0) this.#addHeader();
  }

  /** The sequence after this write. */
  get next(): number {
    return this.#next;
  }

  addCommit(job: AppendJob): CommitRecord {
    const record: CommitRecord = {
      seq: this.#next++,
      at: this.#now,
      durable: this.#takeDurable(),
      key: job.key,
      all: job.all ? true : undefined,
      commits: job.writes.map(({ topic, entries, headers }): TopicCommit => {
        const state = this.#state.keep(topic);
        if (!this.#touched.has(state)) this.#touched.set(state, state.planned);
        const named = state.planned > state.last || state.runs.at(-1)?.segment === this.#segment;
        state.planned += 1;
        return {
          topic,
          ordinal: state.planned,
          epoch: named ? undefined : state.epoch,
          after: named ? undefined : state.bootOf(state.last),
          values: entries.map((entry) => entry.value),
          headers,
        };
      }),
    };
    this.#add(record, printCommit(record, JSON.stringify));
    return record;
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
    for (const [topic, planned] of this.#touched) {
      topic.planned = planned;
      this.#state.unkeep(topic);
    }
  }

  #add(record: JournalRecord, json: string): void {
    this.records.push({ record, offset: this.#at + this.#lines.add(json) });
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
