import { BrokerError, isBrokerError } from '@brokerfeed/core';
import { WriteFailure } from './active-segment.ts';
import type { Appended, AppendJob, ControlJob, Job } from './append-job.ts';
import type { JournalState } from './journal-state.ts';
import type { ResolvedJournalOptions } from './options.ts';
import type { CommitRecord, JournalRecord } from './record.ts';
import type { SegmentWriter } from './segment-writer.ts';

export interface WriterContext {
  readonly file: SegmentWriter;
  readonly state: JournalState;
  readonly options: ResolvedJournalOptions;
  /** Called when records became visible. */
  onApplied(records: readonly JournalRecord[]): void;
}

/** Appends that share one write have at most so many UTF-16 units: a commit must not wait for megabytes of others. */
const MAX_GROUP_UNITS = 4 * 1024 * 1024;

type Phase = { readonly is: 'open' } | { readonly is: 'broken'; readonly cause: unknown };

/**
 * The one that decides what is written when. Jobs wait in a queue; whatever waits when the disk is free becomes one write and
 * one fdatasync, so appends that come during a sync share the next one. Everything that touches the active file is a step
 * of the one loop.
 */
export class Writer {
  readonly #context: WriterContext;
  #queue: Job[] = [];
  #phase: Phase = { is: 'open' };
  #loop: Promise<void> | undefined;
  #flushDue = false;
  #cancelFlush: (() => void) | undefined;

  constructor(context: WriterContext) {
    this.#context = context;
  }

  /** Queues a job. Its `resolve` or `reject` is called, never from inside this call. */
  submit(job: Job): void {
    this.#queue.push(job);
    this.#kick();
  }

  /** Refuses everything from now on: the file can no longer be trusted. */
  break(cause: unknown): void {
    if (this.#phase.is === 'broken') return;
    this.#phase = { is: 'broken', cause };
    this.#context.options.observer.logger.error({ err: cause }, 'journal.broken');
    this.#cancelFlush?.();
  }

  /** Waits for what is queued, makes it durable and leaves a checkpoint behind. */
  async close(): Promise<void> {
    while (this.#loop !== undefined) await this.#loop;
    this.#cancelFlush?.();
    const { file } = this.#context;
    try {
      if (this.#phase.is === 'open') await file.finish();
    } catch (error) {
      this.break(error);
    }
    file.close();
  }

  #kick(): void {
    // Started in a later turn: appends that are made together are written together.
    this.#loop ??= turn()
      .then(() => this.#run())
      .finally(() => {
        this.#loop = undefined;
        // Submitted after the loop had looked for the last time.
        if (this.#queue.length > 0 || this.#flushDue) this.#kick();
      });
  }

  async #run(): Promise<void> {
    while (this.#queue.length > 0 || this.#flushDue) {
      if (this.#phase.is === 'broken') return this.#refuseAll(this.#phase.cause);
      try {
        if (this.#flushDue) await this.#flush();
        await this.#next();
        await this.#context.file.maintain();
      } catch (error) {
        // A full disk is no reason to give up: what failed was taken back.
        if (!(error instanceof WriteFailure)) this.break(error);
      }
      // Lets those whose appends have just resolved append again, so that they share the next write.
      await turn();
    }
  }

  /** Does what waits first. */
  async #next(): Promise<void> {
    const [first] = this.#queue;
    if (first === undefined) return;
    if (first.kind === 'control') {
      this.#queue.shift();
      return this.#control(first);
    }
    await this.#appends(this.#takeAppends());
  }

  /** Takes the appends that become one write. */
  #takeAppends(): readonly AppendJob[] {
    let count = 0;
    let size = 0;
    for (const job of this.#queue) {
      if (job.kind !== 'append') break;
      size += job.size;
      if (count > 0 && size > MAX_GROUP_UNITS) break;
      count += 1;
    }
    // Only appends were counted.
    return this.#queue.splice(0, count) as AppendJob[];
  }

  async #control(job: ControlJob): Promise<void> {
    try {
      const controls = job.decide();
      if (controls.length > 0) this.#context.onApplied(await this.#context.file.control(controls));
      job.resolve();
    } catch (error) {
      this.#reject([job], error);
      throw error;
    }
  }

  async #appends(jobs: readonly AppendJob[]): Promise<void> {
    const { file, options } = this.#context;
    try {
      this.#resolve(jobs, await file.commit(jobs, options.fsync === 'commit'));
    } catch (error) {
      this.#reject(jobs, error);
      throw error;
    }
    if (options.fsync === 'interval') this.#flushLater();
  }

  #resolve(jobs: readonly AppendJob[], records: readonly CommitRecord[]): void {
    const { state, options, onApplied } = this.#context;
    options.observer.meter.record('brokerfeed.journal.group', jobs.length);
    for (let at = 0; at < jobs.length; at += 1) {
      (jobs[at] as AppendJob).resolve(appendedBy(state, records[at] as CommitRecord));
    }
    onApplied(records);
  }

  #reject(jobs: readonly Job[], error: unknown): void {
    const failure = error instanceof WriteFailure ? error : brokenError(error);
    for (const job of jobs) job.reject(failure);
    this.#context.options.observer.logger.error({ err: error }, 'journal.write-failed');
  }

  #refuseAll(cause: unknown): void {
    this.#flushDue = false;
    const jobs = this.#queue;
    this.#queue = [];
    for (const job of jobs) job.reject(brokenError(cause));
  }

  #flushLater(): void {
    const { clock, fsyncIntervalMs } = this.#context.options;
    this.#cancelFlush ??= clock.after(fsyncIntervalMs, () => {
      this.#flushDue = true;
      this.#kick();
    });
  }

  async #flush(): Promise<void> {
    this.#flushDue = false;
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    await this.#context.file.flush();
  }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function appendedBy(state: JournalState, record: CommitRecord): Appended {
  return {
    sequence: record.seq,
    positions: record.commits.map(({ topic, ordinal }) => state.topic(topic).position(ordinal)),
  };
}

function brokenError(cause: unknown): BrokerError {
  if (isBrokerError(cause)) return cause;
  return new BrokerError(
    'UNAVAILABLE',
    `the journal is broken and must be opened anew: ${(cause as Error).message}`,
    { cause },
  );
}
