import type { BrokerLog, Commit, Loss, Sink } from './broker.ts';
import { type Clock, delay } from './clock.ts';
import { deferred } from './deferred.ts';
import { BrokerError } from './errors.ts';
import type { Position } from './position.ts';
import { asBrokerError, isRetryable } from './retry.ts';
import { Ring } from './ring.ts';
import { commitSlot } from './slot.ts';

export interface TailOptions {
  /** Entries that the ring keeps. */
  readonly highWaterMark: number;
  /** How long the tail outlives its last member, in milliseconds. */
  readonly lingerMs: number;
  readonly clock: Clock;
  /** Waits between tries to start the live read again, in milliseconds. */
  readonly retryDelaysMs: readonly number[];
  /**
   * Whether members tell how they stand: then the tail asks the log after an outage how far it has come.
   * @default false
   */
  readonly tellsStanding?: boolean;
}

/** Whoever reads a tail. Its methods never throw. */
export interface TailMember {
  /** The ring has new items, or the live read broke, or stands again. */
  wake(): void;
  /** The tail is over: the log cannot be read, or was closed. */
  fail(error: unknown): void;
}

/**
 * The shared live reader of one topic in this process. It starts with its first member, lingers after its last, and
 * fills one ring for all of them. A live read that breaks is replaced by a fresh one from where the ring ends; a loss that
 * the live read finds is put in the ring, at its place.
 */
export class Tail {
  readonly topic: string;
  readonly #log: BrokerLog;
  readonly #members = new Set<TailMember>();
  readonly #abort = new AbortController();
  readonly #clock: Clock;
  readonly #retryDelaysMs: readonly number[];
  readonly #onStop: () => void;
  readonly #ring: Promise<Ring>;
  #filled: Ring | undefined;
  #highWaterMark: number;
  #lingerMs: number;
  #cancelLinger: (() => void) | undefined;
  #state: 'starting' | 'live' | 'outage' | 'stopped' = 'starting';
  #stalledSince: number | undefined;
  #tellsStanding = false;
  /** Where the log ended at the end of an outage, until the live read has come so far. */
  #owed: Position | undefined;

  /** Starts the live read. `onStop` is called once, when the tail takes no more members. */
  constructor(log: BrokerLog, topic: string, options: TailOptions, onStop: () => void) {
    this.topic = topic;
    this.#log = log;
    this.#clock = options.clock;
    this.#stalledSince = options.clock.now();
    this.#retryDelaysMs = options.retryDelaysMs;
    this.#highWaterMark = options.highWaterMark;
    this.#lingerMs = options.lingerMs;
    this.#onStop = onStop;
    const { promise, resolve, reject } = deferred<Ring>();
    this.#ring = promise;
    promise.catch(() => {}); // a tail that failed before anybody waited is nobody's unhandled rejection
    this.#log.observer.meter.count('brokerfeed.tail.started', 1);
    this.#run(resolve).then(
      // Whoever still waits for the ring has left the tail; let that wait end.
      () => reject(new BrokerError('CLOSED', 'the live read was stopped')),
      (error) => {
        reject(error);
        this.#stop();
        for (const member of this.#members) member.fail(error);
        this.#members.clear();
      },
    );
  }

  /** The ring, once the tail has a position. Rejects where the log could not be read. */
  get ring(): Promise<Ring> {
    return this.#ring;
  }

  get members(): number {
    return this.#members.size;
  }

  get inOutage(): boolean {
    return this.#state === 'outage';
  }

  /** Whether the live read stands: what is appended from now on comes by itself. */
  get stands(): boolean {
    return this.#state === 'live';
  }

  /** Whether what was appended during an outage is still to come. */
  get isBehind(): boolean {
    return this.#owed !== undefined;
  }

  /** The place after the newest commit that the live read got; undefined before it has one. */
  get tip(): Position | undefined {
    return this.#filled?.tip;
  }

  /** For how long the live read has not stood, in milliseconds; undefined while it does. */
  get stalledMs(): number | undefined {
    return this.#stalledSince === undefined ? undefined : this.#clock.now() - this.#stalledSince;
  }

  /** Adds a member. Options of a later member widen those of the first. */
  join(
    member: TailMember,
    options: Pick<TailOptions, 'highWaterMark' | 'lingerMs' | 'tellsStanding'>,
  ): void {
    this.#cancelLinger?.();
    this.#cancelLinger = undefined;
    this.#members.add(member);
    this.#tellsStanding ||= options.tellsStanding === true;
    this.#lingerMs = Math.max(this.#lingerMs, options.lingerMs);
    if (options.highWaterMark > this.#highWaterMark) {
      this.#highWaterMark = options.highWaterMark;
      this.#ring.then((ring) => {
        ring.highWaterMark = Math.max(ring.highWaterMark, options.highWaterMark);
      }, ignore);
    }
  }

  /** Counts a member that fell behind the ring. */
  lagged(): void {
    this.#log.observer.meter.count('brokerfeed.tail.lagged', 1);
    this.#log.observer.logger.debug({ topic: this.topic }, 'brokerfeed.tail.lagged');
  }

  leave(member: TailMember): void {
    if (!this.#members.delete(member) || this.#members.size > 0 || this.#state === 'stopped')
      return;
    if (this.#lingerMs === 0) this.#stop();
    else this.#cancelLinger = this.#clock.after(this.#lingerMs, () => this.#stop());
  }

  #stop(): void {
    if (this.#state === 'stopped') return;
    this.#state = 'stopped';
    this.#cancelLinger?.();
    this.#abort.abort();
    this.#onStop();
  }

  /** Reads live until stopped. Rejects when the log cannot be read any more. */
  async #run(resolveRing: (ring: Ring) => void): Promise<void> {
    const { signal } = this.#abort;
    let ring: Ring | undefined;
    let lost: Loss | undefined;
    let failures = 0;
    while (!signal.aborted) {
      try {
        if (ring === undefined || lost !== undefined) {
          // 'latest' is asked for once, and once after each loss; from then on the position is ours.
          const tip = await this.#latest(signal);
          if (ring === undefined) {
            ring = new Ring(tip, this.#highWaterMark);
            this.#filled = ring;
            resolveRing(ring);
          } else if (lost !== undefined) {
            ring.pushGap(lost, tip);
            this.#log.observer.meter.count('brokerfeed.tail.gaps', 1, { reason: lost });
            lost = undefined;
            this.#owed = undefined;
            this.#wake();
          }
        } else if (this.inOutage && this.#tellsStanding) {
          // The ring does not hold what was appended meanwhile: its end is not the log's yet.
          this.#owed = await this.#latest(signal);
        }
        const sink = this.#sink(ring, () => {
          failures = 0;
        });
        lost = await this.#log.follow(this.topic, ring.tip, sink, signal);
        // Until another one stands. An outage it is not.
        if (this.#state === 'live') this.#state = 'starting';
        // Unasked, and not for a loss: a broker must not, but to start over at once would spin.
        if (lost === undefined && !signal.aborted)
          throw new BrokerError('UNAVAILABLE', 'the live read ended by itself');
        // Past the end while reading live: the log was rolled back under us.
        if (lost === 'ahead') lost = 'forked';
      } catch (error) {
        if (signal.aborted) return;
        const ms = this.#retryDelaysMs[failures];
        if (ms === undefined || !isRetryable(error)) throw asBrokerError(error);
        failures += 1;
        this.#report(error, failures, ms);
        await delay(this.#clock, ms, signal);
      }
    }
  }

  async #latest(signal: AbortSignal): Promise<Position> {
    const page = await this.#log.page(this.topic, 'latest', 0, signal);
    return page.verdict === 'ok' ? page.from : page.bounds.last;
  }

  #sink(ring: Ring, onLive: () => void): Sink {
    return {
      live: () => {
        onLive();
        this.#arrive(ring);
        this.#enter('live');
      },
      commits: (commits: readonly Commit[]) => {
        for (const commit of commits) ring.push(commitSlot(this.topic, commit));
        this.#arrive(ring);
        this.#wake();
      },
    };
  }

  /** Notes how far the live read has come. */
  #arrive({ tip }: Ring): void {
    if (this.#owed !== undefined && tip.ordinal >= this.#owed.ordinal) this.#owed = undefined;
  }

  #wake(): void {
    for (const member of this.#members) member.wake();
  }

  #enter(state: 'live' | 'outage'): void {
    const before = this.#state;
    if (before === 'stopped' || before === state) return;
    this.#state = state;
    if (state === 'live') this.#stalledSince = undefined;
    else this.#stalledSince ??= this.#clock.now();
    // That a live read stands, where nobody was told of an outage, is news to those alone who tell how they stand.
    if (before !== 'starting' || state === 'outage' || this.#tellsStanding) this.#wake();
  }

  #report(error: unknown, attempt: number, retryInMs: number): void {
    const { logger, meter } = this.#log.observer;
    meter.count('brokerfeed.tail.restarts', 1);
    logger.warn({ topic: this.topic, attempt, retryInMs, err: error }, 'brokerfeed.tail.restart');
    this.#enter('outage');
  }
}

function ignore(): void {}
