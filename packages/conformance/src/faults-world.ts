import type { Broker, Commit, Position } from '@brokerfeed/core';
import { FaultAppender } from './faults-appender.ts';
import type { Fault, FaultScene, FaultStore } from './faults-harness.ts';
import { FaultHistory } from './faults-history.ts';
import { emptyLedger, FaultJudge, type FaultLedger } from './faults-judge.ts';
import type { FaultRecord, FaultValue } from './faults-record.ts';
import type { FaultSubscriber } from './faults-subscriber.ts';

/** The options of {@link FaultWorld}. */
export interface FaultWorldOptions {
  readonly topic: string;
  /** Appends. What is done to the store reaches it too. */
  readonly appender: Broker;
  /** Reads the log when all is quiet. @default the appender */
  readonly observer?: Broker;
  /**
   * Time between appends, in milliseconds.
   * @default 10
   */
  readonly everyMs?: number;
  /**
   * How long subscribers may take until they have what was acknowledged, in milliseconds.
   * @default 20_000
   */
  readonly deadlineMs?: number;
  /**
   * How much longer than usual faults last.
   * @default 1
   */
  readonly scale?: number;
}

/** Of so many subscribers, one is away during a fault. Odd, since kinds of subscribers take turns. */
const AWAY_EVERY = 5;
const PAUSED_EVERY = 3;
/** Commits before a fault and after it, at least. */
const SOME = 5;
const PAGE = 1_000;
const LOOK_MS = 5;

/** One topic, a steady appender, subscribers, and what became of them, fault after fault. */
export class FaultWorld implements AsyncDisposable {
  readonly ledger: FaultLedger = emptyLedger();
  readonly #options: FaultWorldOptions;
  readonly #history = new FaultHistory();
  readonly #appender: FaultAppender;
  readonly #observer: Broker;
  readonly #subscribers: readonly FaultSubscriber[];
  readonly #judges: readonly FaultJudge[];
  #judgedTo = 1;
  /** Of the appends acknowledged before the newest judgement and after the one before, those that the log does not hold. */
  #gone = 0;
  readonly #deadlineMs: number;
  readonly #away = new Set<FaultSubscriber>();
  readonly #paused = new Set<FaultSubscriber>();
  /** Losses that each was told of before the fault. */
  #losses: ReadonlyMap<FaultRecord, number> = new Map();

  constructor(options: FaultWorldOptions, subscribers: readonly FaultSubscriber[]) {
    this.#options = options;
    this.#deadlineMs = options.deadlineMs ?? 20_000;
    this.#subscribers = subscribers;
    this.#observer = options.observer ?? options.appender;
    const { topic, appender, everyMs = 10 } = options;
    this.#appender = new FaultAppender(topic, appender, this.#history, everyMs);
    this.#judges = subscribers.map(
      ({ record }) => new FaultJudge(record.name, this.#history, this.ledger),
    );
  }

  /** Connects everybody, and waits until they stand. */
  async start(): Promise<void> {
    for (const subscriber of this.#subscribers) subscriber.connect();
    await this.#appender.append(1);
    await this.#settle();
  }

  /**
   * Does one fault to the store, while appends go on and some subscribers are away; then waits until everybody has the whole
   * log, and judges. Throws where a subscriber noticed something else than the fault's `expected`; what it missed or got
   * twice is in the ledger.
   */
  async run<Store extends FaultStore>(fault: Fault<Store>, store: Store): Promise<void> {
    await this.#appender.append(SOME);
    await this.#delivered();
    this.#subscribers.forEach((subscriber, nth) => {
      if (nth % AWAY_EVERY !== AWAY_EVERY - 1) return;
      subscriber.leave();
      this.#away.add(subscriber);
    });
    this.#losses = new Map(this.#subscribers.map(({ record }) => [record, record.losses]));
    this.#appender.goOn();
    await this.#appender.append(1);
    await fault.inject(store, this.#scene());
    const away = new Set(this.#away);
    for (const subscriber of away) subscriber.connect();
    this.#away.clear();
    this.#appender.goOn();
    await this.#appender.append(SOME);
    await this.#settle();
    this.ledger.faults += 1;
    this.#compare(fault, away);
  }

  /** Ends the appender and the subscribers. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#appender.close();
    await Promise.all(this.#subscribers.map((subscriber) => subscriber.close()));
  }

  #scene(): FaultScene {
    return {
      topic: this.#options.topic,
      append: (commits, through) => this.#appender.append(commits, through),
      hold: () => this.#appender.hold(),
      goOn: () => this.#appender.goOn(),
      delivered: () => this.#delivered(),
      pause: () => this.#pause(),
      told: () => this.#told(),
      last: (ms) => pause(ms * (this.#options.scale ?? 1)),
    };
  }

  /** Waits until everybody has the whole log, reads it, and judges. */
  async #settle(): Promise<void> {
    await this.#appender.hold();
    if (this.#appender.failure !== undefined) throw this.#appender.failure.error;
    const tip = await this.#readLog();
    const late = await this.#until(() => this.#subscribers.filter((each) => !stands(each, tip)));
    const names = this.#history.heldFrom(this.#judgedTo);
    this.#gone = this.#history.acknowledgedFrom(this.#judgedTo) - names.length;
    this.#judgedTo = this.#appender.next;
    // The judges say of those that are late what they miss.
    this.#judges.forEach((judge, nth) => {
      const subscriber = this.#subscribers[nth] as FaultSubscriber;
      judge.judge(subscriber.record.take(), tip, names);
    });
    this.ledger.acknowledged = this.#history.acknowledged;
    if (late.length > 0) {
      const [first] = late as [FaultSubscriber];
      throw new Error(
        `${late.length} subscribers do not come to the end of the log, such as ${first.record.name}: ${this.ledger.problems.join('; ')}`,
      );
    }
  }

  async #delivered(): Promise<void> {
    const tip = this.#history.newest;
    if (tip === undefined) return;
    const there = this.#taking();
    const late = await this.#until(() =>
      there.filter(({ record: { at } }) => at?.epoch !== tip.epoch || at.ordinal < tip.ordinal),
    );
    if (late.length > 0) throw new Error(`${late.length} subscribers do not get what was appended`);
  }

  #pause(): () => void {
    const resumes = this.#taking()
      .filter((_, nth) => nth % PAUSED_EVERY === 0)
      .flatMap((subscriber) => {
        const resume = subscriber.pause?.();
        if (resume === undefined) return [];
        this.#paused.add(subscriber);
        return resume;
      });
    return () => {
      this.#paused.clear();
      for (const resume of resumes) resume();
    };
  }

  /** Those who are there and take what comes. */
  #taking(): FaultSubscriber[] {
    return this.#subscribers.filter((each) => !this.#away.has(each) && !this.#paused.has(each));
  }

  async #told(): Promise<void> {
    const there = this.#taking();
    const late = await this.#until(() =>
      there.filter(({ record }) => record.losses <= (this.#losses.get(record) ?? 0)),
    );
    if (late.length > 0) throw new Error(`${late.length} subscribers are not told of the loss`);
  }

  async #readLog(): Promise<Position> {
    const { topic } = this.#options;
    const { log } = this.#observer;
    const commits: Commit[] = [];
    for (let from: Position | 'earliest' = 'earliest'; ; ) {
      const page = await log.page(topic, from, PAGE);
      if (page.verdict !== 'ok') throw new Error(`the quiet log answers ${page.verdict}`);
      commits.push(...page.commits);
      from = page.commits.at(-1)?.position ?? page.from;
      if (!page.atTip) continue;
      for (const name of this.#history.read(commits, page.bounds, nameOf)) {
        this.ledger.repeated += 1;
        this.ledger.problems.push(`append ${name} is in the log twice`);
      }
      return page.bounds.last;
    }
  }

  /** Waits until nobody is left, and answers those that still are when the time is over. */
  async #until(left: () => FaultSubscriber[]): Promise<FaultSubscriber[]> {
    const deadline = Date.now() + this.#deadlineMs;
    for (;;) {
      const those = left();
      if (those.length === 0 || Date.now() > deadline) return those;
      await pause(LOOK_MS);
    }
  }

  #compare({ expected, told = 'all' }: Fault<FaultStore>, away: Set<FaultSubscriber>): void {
    const reasons = this.#judges.map((judge) => judge.reasons);
    const all = [...new Set(reasons.flat())];
    const allowed: readonly string[] = expected === 'invisible' ? [] : [...expected, 'snapshot'];
    const other = all.filter((reason) => !allowed.includes(reason));
    if (other.length > 0) throw new Error(`told ${other.join()}, where it should be ${expected}`);
    if (expected === 'invisible') {
      if (this.#gone > 0) throw new Error(`${this.#gone} acknowledged appends are not in the log`);
      return;
    }
    // Whoever misses an entry untold has been found by its judge.
    if (told === 'missing') return;
    const untold = this.#subscribers.filter(
      (each, nth) => reasons[nth]?.length === 0 && !(told === 'there' && away.has(each)),
    );
    if (untold.length > 0) throw new Error(`${untold.length} subscribers were told nothing`);
  }
}

function stands({ record: { at } }: FaultSubscriber, tip: Position): boolean {
  return at?.ordinal === tip.ordinal && at.epoch === tip.epoch && at.id === tip.id;
}

function nameOf(commit: Commit): number {
  return (JSON.parse(commit.entries[0]?.value ?? '{}') as FaultValue).n;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
