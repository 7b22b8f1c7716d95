import { ActiveSegment, WriteFailure } from './active-segment.ts';
import type { AppendJob, Control } from './append-job.ts';
import type { Caches } from './caches.ts';
import type { FileSystem } from './file-system.ts';
import type { JournalState } from './journal-state.ts';
import type { Layout } from './layout.ts';
import { LineBuffer } from './line-buffer.ts';
import type { ResolvedJournalOptions } from './options.ts';
import type { CommitRecord, JournalRecord } from './record.ts';
import { firstRetained, sealsEarly } from './retention.ts';
import type { Segment } from './segment.ts';
import { WritePlan } from './write-plan.ts';

export interface SegmentWriterContext {
  readonly fs: FileSystem;
  readonly layout: Layout;
  readonly caches: Caches;
  readonly state: JournalState;
  readonly options: ResolvedJournalOptions;
  readonly boot: number;
  /** Called for a segment that will not be written to any more. */
  onSealed(segment: Segment): void;
  /** Called for each segment that is gone from the state, to remove its file. */
  onRetired(first: number): void;
}

const CHECKPOINT_BYTES = 2 * 1024 * 1024;
/** Checkpoints and indexes cost at most a quarter of what the log does. */
const CHECKPOINT_FACTOR = 4;
const MAX_CARRIED = 5_000;
const RETENTION_CHECK_MS = 1_000;

/**
 * Writes to the active segment, and does what a segment's life asks for: births, seals, checkpoints, retention. One call at
 * a time.
 */
export class SegmentWriter {
  readonly #context: SegmentWriterContext;
  readonly #lines = new LineBuffer();
  #active: ActiveSegment | undefined;
  /** The newest sequence that is known to be on the disk. */
  #durable: number;
  #checkpointedNext = 0;
  /** The segment in which the newest checkpoint stands that this opening wrote; 0 before it wrote one. */
  #checkpointedIn = 0;
  #bytesSinceCheckpoint = 0;
  #checkpointBytes = 0;
  #retainedAt: number | undefined;

  constructor(context: SegmentWriterContext) {
    this.#context = context;
    // Recovery has synced all that it found.
    this.#durable = context.state.next - 1;
  }

  /** Writes controls, syncs and applies them. */
  async control(controls: readonly Control[]): Promise<readonly JournalRecord[]> {
    return this.#write(true, (plan) => {
      for (const control of controls) plan.addControl(control);
    });
  }

  /** Writes one commit for each job, makes them as durable as asked and applies them. Answers one record for each. */
  async commit(jobs: readonly AppendJob[], sync: boolean): Promise<readonly CommitRecord[]> {
    const records = await this.#write(sync, (plan) => {
      for (const job of jobs) plan.addCommit(job);
    });
    // Nothing else was added to the plan.
    return records as readonly CommitRecord[];
  }

  /** Makes durable what was written. */
  async flush(): Promise<void> {
    const { next } = this.#context.state;
    if (this.#active === undefined || this.#durable === next - 1) return;
    await this.#active.sync();
    this.#durable = next - 1;
  }

  /** Does what need not happen before an append resolves. */
  async maintain(): Promise<void> {
    if (this.#isCheckpointDue()) await this.#checkpoint();
    if (this.#isRetentionDue()) await this.#retain();
  }

  /** Leaves a checkpoint behind. */
  async finish(): Promise<void> {
    if (this.#active !== undefined) await this.#checkpoint();
  }

  close(): void {
    this.#active?.close();
    this.#active = undefined;
  }

  async #write(sync: boolean, add: (plan: WritePlan) => void): Promise<readonly JournalRecord[]> {
    const { state, options, fs, layout } = this.#context;
    if (this.#active !== undefined && this.#isFull(this.#active)) await this.#seal();
    const active = this.#active ?? this.#begin();
    const { segment } = active;
    const isNew = segment.bytes === 0;
    const now = options.clock.now();
    const plan = new WritePlan(state, segment, this.#lines, { now, durable: this.#durable });
    try {
      add(plan);
      await active.write(plan.bytes());
      if (sync) await active.sync();
      if (isNew) fs.syncDir(layout.segments);
    } catch (error) {
      plan.withdraw();
      if (isNew) this.#unmake(active);
      else if (!(error instanceof WriteFailure)) cutToApplied(active);
      throw error;
    }
    if (isNew) state.segments.push(segment);
    this.#apply(active, plan, sync);
    return plan.records;
  }

  #apply(active: ActiveSegment, plan: WritePlan, synced: boolean): void {
    const { state } = this.#context;
    const { segment, bytes } = active;
    plan.records.forEach((record, index) => {
      state.apply(record, segment, plan.offset(index));
    });
    this.#bytesSinceCheckpoint += bytes - segment.bytes;
    segment.bytes = bytes;
    if (segment.index !== undefined) segment.index.covered = bytes;
    if (synced) this.#durable = state.next - 1;
  }

  #begin(): ActiveSegment {
    const { fs, layout, state, boot } = this.#context;
    try {
      this.#active = ActiveSegment.create(fs, layout, state.next, boot);
    } catch (error) {
      throw new WriteFailure(error);
    }
    return this.#active;
  }

  /** Removes a segment whose first write failed. */
  #unmake(active: ActiveSegment): void {
    const { fs, layout } = this.#context;
    this.#active = undefined;
    active.close();
    fs.unlink(layout.segment(active.segment.first));
  }

  #isFull({ segment }: ActiveSegment): boolean {
    const { segmentBytes, retention, clock } = this.#context.options;
    return segment.bytes >= segmentBytes || sealsEarly(segment, retention, clock.now());
  }

  /** Ends the active segment: it is durable before its successor is born. */
  async #seal(): Promise<void> {
    await this.#checkpoint();
    if (this.#active !== undefined) this.#context.onSealed(this.#active.segment);
    this.close();
    // Once its successor holds the write that is waiting, the segment may itself be one that goes.
    this.#retainedAt = undefined;
  }

  #isCheckpointDue(): boolean {
    const due = Math.max(CHECKPOINT_BYTES, CHECKPOINT_FACTOR * this.#checkpointBytes);
    return this.#bytesSinceCheckpoint >= due;
  }

  /** Writes the caches. Everything that they cover is synced first. */
  async #checkpoint(): Promise<void> {
    const { state, caches, options } = this.#context;
    await this.flush();
    if (this.#checkpointedNext === state.next) return;
    const newest = this.#active?.segment;
    const indexBytes = newest?.index === undefined ? 0 : caches.saveIndex(newest, newest.index);
    this.#checkpointBytes = indexBytes + caches.saveCheckpoint(state, options.clock.now());
    this.#checkpointedNext = state.next;
    this.#checkpointedIn = newest?.first ?? 0;
    this.#bytesSinceCheckpoint = 0;
  }

  /** After opening, after a seal, and now and then for what grows old by itself. */
  #isRetentionDue(): boolean {
    if (this.#retainedAt === undefined) return true;
    const { clock, retention } = this.#context.options;
    return (
      Number.isFinite(retention.maxAgeMs) && clock.now() - this.#retainedAt >= RETENTION_CHECK_MS
    );
  }

  /** Lets go of the segments that retention is done with: said in the log first, then shown, then removed. */
  async #retain(): Promise<void> {
    const { state, options, caches } = this.#context;
    const now = options.clock.now();
    // Asks every topic: not each second, but where a checkpoint of them all was just written.
    const needed = this.#retainedAt === undefined ? state.firstNeeded() : 0;
    this.#retainedAt = now;
    const kept = Math.max(needed, firstRetained(state.segments, options.retention, now));
    const gone = state.segments.filter((segment) => segment.first < kept);
    if (gone.length === 0) return;
    const carried = state.carriedBy(kept);
    const controls: Control[] = [];
    for (let at = 0; at < carried.length; at += MAX_CARRIED) {
      controls.push({ carry: carried.slice(at, at + MAX_CARRIED) });
    }
    await this.control([...controls, { retire: kept }]);
    // The keys of commits that go are in checkpoints alone, and one that stands in a segment that goes is of no use.
    if (this.#checkpointedIn < kept) await this.#checkpoint();
    caches.syncCheckpoint(this.#checkpointedNext);
    for (const segment of gone) this.#context.onRetired(segment.first);
  }
}

/** Takes back a write that could not be synced, as far as that is possible. */
function cutToApplied(active: ActiveSegment): void {
  try {
    active.cutToApplied();
  } catch {
    // The journal is broken already, and its next opening looks at every line.
  }
}
