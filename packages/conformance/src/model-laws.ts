import assert from 'node:assert/strict';
import type { BrokerLog, Commit, Page, Position, Start } from '@brokerfeed/core';
import fc from 'fast-check';
import { test } from 'vitest';
import { type BrokerHarness, freshTopic, type GetSubject } from './broker-harness.ts';
import { Follower } from './follower.ts';
import { aheadOf, forkedAt } from './forged.ts';
import { at, expectContiguous, tipOf, valuesOf } from './reading.ts';
import { type HeldPosition, type ModelAnswer, TopicModel } from './topic-model.ts';

const MAX_STEPS = 40;
const MAX_ENTRIES = 5;

/** Where a generated read starts. Picks are taken modulo what there is. */
type ReadFrom =
  | { readonly at: 'earliest' }
  | { readonly at: 'latest' }
  | { readonly at: 'held' | 'ahead' | 'forked'; readonly pick: number };

type Write =
  | {
      readonly do: 'append';
      readonly peer: boolean;
      readonly values: readonly string[];
      /** What the append asks to be left. */
      readonly maxEntries?: number | undefined;
    }
  | { readonly do: 'trim'; readonly keep: number }
  | { readonly do: 'drop' };

type Step =
  | Write
  | {
      readonly do: 'read';
      readonly peer: boolean;
      readonly from: ReadFrom;
      readonly limit: number;
    };

const value = fc.oneof(fc.string({ unit: 'binary', maxLength: 12 }), fc.json({ maxDepth: 1 }));
const append = fc.record({
  do: fc.constant('append' as const),
  peer: fc.boolean(),
  values: fc.array(value, { minLength: 1, maxLength: MAX_ENTRIES }),
  maxEntries: fc.option(fc.integer({ min: 1, max: 8 }), { nil: undefined, freq: 4 }),
});
const trim = fc.record({ do: fc.constant('trim' as const), keep: fc.nat(6) });
const drop = fc.constant({ do: 'drop' as const });
const read = fc.record({
  do: fc.constant('read' as const),
  peer: fc.boolean(),
  from: fc.oneof(
    { weight: 6, arbitrary: fc.record({ at: fc.constant('held' as const), pick: fc.nat() }) },
    {
      weight: 2,
      arbitrary: fc.constantFrom<ReadFrom>({ at: 'earliest' }, { at: 'latest' }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        at: fc.constantFrom('ahead' as const, 'forked' as const),
        pick: fc.nat(),
      }),
    },
  ),
  limit: fc.nat(8),
});

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: append },
    { weight: 3, arbitrary: trim },
    { weight: 1, arbitrary: drop },
    { weight: 10, arbitrary: read },
  ),
  { minLength: 1, maxLength: MAX_STEPS, size: 'max' },
);

const writes: fc.Arbitrary<Write[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: append },
    { weight: 4, arbitrary: trim },
    { weight: 1, arbitrary: drop },
  ),
  { minLength: 1, maxLength: MAX_STEPS, size: 'max' },
);

/** Histories made at random, compared with an array. */
export function modelLaws(of: GetSubject, runs: number): void {
  test(`every page of ${runs} random histories is the page of a plain array`, async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (history) => {
        const { log, peerLog, harness } = of();
        const run = new ModelRun(harness, log, peerLog);
        for (const step of history) await run.take(step);
        await run.compareEverything();
      }),
      { numRuns: runs },
    );
  });

  test(`a live read of ${runs} random histories delivers a run without a hole, or tells the loss`, async () => {
    await fc.assert(
      fc.asyncProperty(writes, async (history) => {
        const { log, peerLog, harness } = of();
        const run = new ModelRun(harness, log, peerLog);
        await run.compareLive(history);
      }),
      { numRuns: runs },
    );
  });
}

/** One history on a topic of its own: takes steps on broker and model, and compares what they answer. */
class ModelRun {
  readonly #topic = freshTopic('model');
  readonly #model = new TopicModel();
  readonly #held: HeldPosition[] = [];
  readonly #harness: BrokerHarness;
  readonly #log: BrokerLog;
  readonly #peerLog: BrokerLog;

  constructor(harness: BrokerHarness, log: BrokerLog, peerLog: BrokerLog) {
    this.#harness = harness;
    this.#log = log;
    this.#peerLog = peerLog;
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'append':
        return this.#append(step.peer ? this.#peerLog : this.#log, step.values, step.maxEntries);
      case 'trim':
        await this.#harness.trim(this.#topic, step.keep);
        return this.#model.trim(step.keep);
      case 'drop':
        await this.#harness.drop(this.#topic);
        return this.#model.drop();
      case 'read':
        return this.#read(step.peer ? this.#peerLog : this.#log, step.from, step.limit);
      default:
        return step satisfies never;
    }
  }

  /** Reads from every position that was ever seen. */
  async compareEverything(): Promise<void> {
    await this.#read(this.#log, { at: 'earliest' }, Number.MAX_SAFE_INTEGER);
    for (const pick of [...this.#held.keys()])
      await this.#read(this.#peerLog, { at: 'held', pick }, 3);
  }

  /**
   * Follows the topic while a history is written. What has come is compared at the end: a live read may have been quick
   * enough to see a commit before its trim, or not; either is right as long as it is told.
   */
  async compareLive(history: readonly Write[]): Promise<void> {
    const model = this.#model;
    const from = await tipOf(this.#log, this.#topic);
    const follower = new Follower(this.#log, this.#topic, from);
    try {
      await follower.live;
      const written: string[][] = [];
      for (const write of [...history, { do: 'append', peer: true, values: ['last'] } as const]) {
        await this.take(write);
        if (write.do === 'append' && model.incarnation === 0) written.push([...write.values]);
      }
      const whole = follower.received(written.length).then(() => undefined);
      whole.catch(() => {}); // the loss is looked at below
      const loss = await (model.incarnation > 0
        ? follower.ended
        : Promise.race([follower.ended, whole]));
      const seen = follower.commits;
      expectContiguous(from, seen);
      assert.deepEqual(valuesOf(seen), written.slice(0, seen.length));
      if (loss === undefined) assert.equal(seen.length, written.length);
      else if (model.incarnation > 0) assert.ok(loss === 'epoch' || loss === 'trimmed', loss);
      else assert.deepEqual([loss, seen.length < model.trimmed], ['trimmed', true]);
    } finally {
      await follower.stop();
    }
  }

  async #append(
    log: BrokerLog,
    values: readonly string[],
    maxEntries: number | undefined,
  ): Promise<void> {
    const asked = maxEntries === undefined ? {} : { retention: { maxEntries } };
    const position = await log.append(this.#topic, values, asked);
    assert.equal(position.ordinal, this.#model.count + 1);
    assert.equal(position.epoch, this.#model.epoch ?? position.epoch);
    assert.ok(!this.#model.pastEpochs.has(position.epoch), 'the epoch is an old one');
    this.#model.append(position, values);
    this.#hold(position);
    if (maxEntries !== undefined) await this.#learnTrim(log, maxEntries);
  }

  /** Whether a store counts entries or commits is its own affair: no fewer entries stay than were asked for, and no more commits. */
  async #learnTrim(log: BrokerLog, maxEntries: number): Promise<void> {
    const model = this.#model;
    const had = model.retained;
    const { first } = await log.bounds(this.#topic);
    assert.ok(first.ordinal >= model.trimmed, 'a commit came back');
    model.trim(model.count - first.ordinal);
    assert.ok(model.retained >= Math.min(had, maxEntries), 'too few entries are left');
    assert.ok(model.count - model.trimmed <= maxEntries, 'too many commits are left');
  }

  async #read(log: BrokerLog, from: ReadFrom, limit: number): Promise<void> {
    const read = this.#resolve(from);
    if (read === undefined) return;
    const page = await log.page(this.#topic, read.start, limit);
    this.#model.learn(page);
    this.#compare(page, read.answer ?? this.#model.read(read.place, limit), limit);
  }

  /** Decides what a read is of; nothing where the history has no such position yet. */
  #resolve(
    from: ReadFrom,
  ): { start: Start; place: HeldPosition | number; answer?: ModelAnswer } | undefined {
    const model = this.#model;
    if (from.at === 'earliest') return { start: from.at, place: model.trimmed };
    if (from.at === 'latest') return { start: from.at, place: model.count };
    if (from.at === 'held') {
      const held = this.#held[from.pick % this.#held.length];
      return held && { start: held.position, place: held };
    }
    const tip = model.place(model.count);
    if (tip === undefined) return undefined;
    if (from.at === 'ahead') {
      const count = 1 + (from.pick % 3);
      return { start: aheadOf(tip, count), place: model.count + count };
    }
    // A retained commit under the id of the one before it.
    const retained = model.count - model.trimmed;
    const ordinal = model.count - (from.pick % Math.max(retained, 1));
    const [place, other] = [model.place(ordinal), model.place(ordinal - 1)];
    if (retained === 0 || place === undefined || other === undefined) return undefined;
    return { start: forkedAt(place, other), place: ordinal, answer: { verdict: 'forked' } };
  }

  #compare(page: Page, answer: ModelAnswer, limit: number): void {
    const model = this.#model;
    const [first, last] = [model.place(model.trimmed), model.place(model.count)];
    assert.deepEqual(page.bounds, { first, last });
    assert.ok(!model.pastEpochs.has(page.bounds.last.epoch), 'the epoch is an old one');
    assert.equal(page.verdict, answer.verdict);
    if (page.verdict !== 'ok' || answer.verdict !== 'ok') return;
    const from = model.place(answer.from) as Position;
    assert.deepEqual(page.from, from);
    this.#hold(page.from);
    // A broker may answer fewer commits than asked for, but not none.
    const expected = answer.commits.slice(0, page.commits.length);
    if (answer.commits.length > 0 && limit > 0) assert.ok(expected.length > 0, 'the page is empty');
    assert.deepEqual(
      page.commits.map(plain),
      expected.map(({ position, values }) => ({ position, values })),
    );
    expectContiguous(from, page.commits);
    assert.equal(page.atTip, answer.from + page.commits.length === model.count);
  }

  #hold(position: Position): void {
    this.#held.push({ position, incarnation: this.#model.incarnation });
  }
}

function plain(commit: Commit): { position: Position; values: string[] } {
  return { position: commit.position, values: at(valuesOf([commit]), 0) };
}
