import { setMaxListeners } from 'node:events';
import type { BrokerLog, Loss, Position } from '@brokerfeed/core';
import { isBrokerError } from '@brokerfeed/core';
import { valuesOf } from './support.ts';

/** What a reader was given between two losses, or since. */
interface Segment {
  readonly values: string[];
  /** The loss that ended it. */
  told?: Loss;
}

/** Appends one value. */
type Append = (topic: string, value: string) => Promise<unknown>;

/** Topics that are written to and read while something happens to their servers, and what became of it. */
export class TopicLedger implements AsyncDisposable {
  readonly #topics: readonly TopicRecord[];
  readonly #abort = new AbortController();
  readonly #work: Promise<unknown>[] = [];
  #phase: 'idle' | 'writing' | 'stopped' = 'idle';
  #written = 0;

  /** `append` is how the test appends. */
  constructor(log: BrokerLog, topics: readonly string[], append: Append) {
    // As many as there are topics.
    setMaxListeners(0, this.#abort.signal);
    this.#topics = topics.map((topic) => new TopicRecord(log, topic, append, this.#abort.signal));
  }

  /** Entries that were acknowledged, of all topics. */
  get acknowledged(): number {
    return this.#topics.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0);
  }

  /** How many topics were told of a loss. */
  get told(): number {
    return this.#topics.filter(({ segments }) => segments.length > 1).length;
  }

  /** Starts a live read of each topic, then appends to one after the other without end. */
  async start(): Promise<void> {
    await Promise.all(this.#topics.map((topic) => topic.start()));
    this.#phase = 'writing';
    this.#work.push(this.#write());
  }

  /** Resolves when so many more entries were acknowledged. */
  async goesOn(entries: number): Promise<void> {
    const goal = this.acknowledged + entries;
    while (this.acknowledged < goal && this.#phase === 'writing') await tick();
  }

  /** Stops appending; resolves when what was under way is acknowledged or refused. */
  async stop(): Promise<void> {
    this.#phase = 'stopped';
    await Promise.all(this.#work);
  }

  /** What is wrong, a sentence each; waits until each reader has, or was told to lack, what its topic holds. */
  async problems(): Promise<string[]> {
    await this.stop();
    const found = await Promise.all(this.#topics.map((topic) => topic.problems()));
    return found.flat();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#phase = 'stopped';
    this.#abort.abort();
    await Promise.all([...this.#work, ...this.#topics.map(({ done }) => done)]);
  }

  async #write(): Promise<void> {
    while (this.#phase === 'writing') {
      // One at a time: what is acknowledged has an order.
      for (const topic of this.#topics) {
        if (this.#phase !== 'writing') return;
        await topic.append(`${this.#written++}`);
      }
      await tick();
    }
  }
}

class TopicRecord {
  readonly topic: string;
  readonly acknowledged: string[] = [];
  readonly segments: Segment[] = [{ values: [] }];
  readonly failures: unknown[] = [];
  done: Promise<void> = Promise.resolve();
  readonly #log: BrokerLog;
  readonly #append: Append;
  readonly #signal: AbortSignal;

  constructor(log: BrokerLog, topic: string, append: Append, signal: AbortSignal) {
    this.topic = topic;
    this.#log = log;
    this.#append = append;
    this.#signal = signal;
  }

  async append(value: string): Promise<void> {
    try {
      await this.#append(this.topic, value);
      this.acknowledged.push(value);
    } catch (error) {
      // Refused or unanswered: nobody was promised anything. Anything else is a fault of ours.
      if (!isBrokerError(error, 'UNAVAILABLE')) this.failures.push(error);
    }
  }

  /** Resolves when the read is live. */
  async start(): Promise<void> {
    const { last } = await this.#log.bounds(this.topic);
    await new Promise<void>((live) => {
      this.done = this.#read(last, live);
    });
  }

  async problems(): Promise<string[]> {
    const held = await this.#held();
    const last = await this.#untilRead(held);
    const problems = this.failures.map((failure) => `${this.topic}: ${failure}`);
    if (`${last.values}` !== `${held}`) {
      problems.push(`${this.topic} was read as ${last.values}, and holds ${held}`);
    }
    const kept = new Set(held);
    const lost = [...this.acknowledged, ...this.segments.flatMap(({ values }) => values)].filter(
      (value) => !kept.has(value),
    );
    const told = this.segments.length > 1;
    if (lost.length > 0 && !told) problems.push(`${this.topic} lost ${lost}, and nobody was told`);
    if (lost.length === 0 && told) problems.push(`${this.topic} was told of a loss for nothing`);
    for (const { values } of this.segments) {
      if (new Set(values).size < values.length) problems.push(`${this.topic} repeats itself`);
    }
    return problems;
  }

  async #read(from: Position, live: () => void): Promise<void> {
    let at = from;
    while (!this.#signal.aborted) {
      const segment = this.segments.at(-1) as Segment;
      const sink = {
        live,
        commits: (commits: Parameters<typeof valuesOf>[0]) => {
          segment.values.push(...valuesOf(commits));
          at = commits.at(-1)?.position ?? at;
        },
      };
      try {
        const told = await this.#log.follow(this.topic, at, sink, this.#signal);
        if (told === undefined) return;
        const page = await this.#log.page(this.topic, 'earliest', 0, this.#signal);
        segment.told = told;
        at = page.bounds.first;
        this.segments.push({ values: [] });
      } catch (error) {
        // What a tail does: it goes on from where it was.
        if (!this.#signal.aborted && !isBrokerError(error, 'UNAVAILABLE'))
          this.failures.push(error);
      }
    }
  }

  async #held(): Promise<string[]> {
    const page = await this.#log.page(this.topic, 'earliest', 100_000);
    return page.verdict === 'ok' ? valuesOf(page.commits) : [page.verdict];
  }

  /** Answers the newest segment, once it is as long as it will be. */
  async #untilRead(held: readonly string[]): Promise<Segment> {
    const deadline = Date.now() + 15_000;
    for (;;) {
      const last = this.segments.at(-1) as Segment;
      if (last.values.length >= held.length && last.values.at(-1) === held.at(-1)) return last;
      if (Date.now() > deadline) return last;
      await tick();
    }
  }
}

/** Lets others have a turn, and the processor. */
function tick(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 2));
}
