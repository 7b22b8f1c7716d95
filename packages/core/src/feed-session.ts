import type { BrokerLog } from './broker.ts';
import { CLOSED, Closing, untilClosed } from './closing.ts';
import { type Delivery, SKIPPED } from './delivery.ts';
import { FeedControls, firstValueNumber } from './feed-controls.ts';
import type { ResolvedFeedOptions } from './feed-options.ts';
import { FeedRefusal } from './feed-refusal.ts';
import { chain, isPromise, type MaybePromise } from './maybe-promise.ts';
import type { Meter } from './observer.ts';
import type { Position } from './position.ts';
import type { EntrySlot } from './slot.ts';
import { type PositionedSnapshot, type SnapshotLoads, snapshotValues } from './snapshot.ts';
import { Gap, Subscriber } from './subscriber.ts';
import { tailsOf } from './tails.ts';
import type { TokenScope, TokenSigner } from './token-signer.ts';
import type { FeedControl, FeedStanding } from './wire/control.ts';
import type { FeedReason } from './wire/reason.ts';
import type { TokenFields, TokenKind } from './wire/token.ts';

/** What a client gets: a value, and the token with which it resumes after it. */
export interface FeedFrame {
  readonly token: string;
  readonly value: unknown;
}

/** Where a subscriber starts, as its token says. */
export type FeedStart =
  | { readonly kind: 'fresh' }
  | { readonly kind: 'resume'; readonly fields: TokenFields; readonly token: string }
  | { readonly kind: 'gap'; readonly refusal: FeedRefusal; readonly token: string | undefined };

/** Parts that all subscribers of a feed share. */
export interface FeedShared<A extends object> {
  readonly log: BrokerLog;
  readonly options: ResolvedFeedOptions<A>;
  readonly signer: TokenSigner;
  readonly snapshots: SnapshotLoads;
  /** Lets go of what the subscriptions of a topic share. */
  readonly release: (topic: string) => void;
}

/** Whoever carries the frames of a session. */
export interface Carrier {
  /** Called once, when the session was closed. Never throws. */
  closed(): void;
}

/** The answer of {@link FeedSession.next} where nothing is ready: the subscriber will wake its reader. */
export const IDLE: unique symbol = Symbol('idle');

/** Entries or snapshot values delivered in one go before other work of the process gets its turn. */
const YIELD_EVERY = 128;

/** Gaps in a row, no entry between and never at the tip, before the feed gives up: the log retains less than a snapshot takes. */
const MAX_GAPS = 5;

type Phase =
  | { readonly phase: 'entries' }
  | {
      readonly phase: 'snapshot';
      readonly snapshot: PositionedSnapshot;
      held: unknown;
      index: number;
    }
  | { readonly phase: 'gap'; readonly reason: FeedReason; readonly token: string | undefined };

const NOTHING_HELD: unique symbol = Symbol('nothing held');

/** Nearly all sessions are here nearly always: they share it. */
const ENTRIES: Phase = { phase: 'entries' };

/**
 * One subscription of a feed: what comes next, step by step. There may be very many, idle most of the time: what it
 * holds, and how many objects it is spread over, is bounded by the bench `memory`.
 */
export class FeedSession<A extends object> {
  readonly #shared: FeedShared<A>;
  readonly delivery: Delivery<A>;
  readonly #scope: TokenScope;
  readonly args: A;
  readonly subscriber: Subscriber;
  readonly closing: Closing = new Closing();
  carrier: Carrier | undefined;
  readonly #signal: AbortSignal;
  readonly #onAbort: () => void;
  /** Undefined where no control frames were asked for. */
  readonly #controls: FeedControls | undefined;
  #phase: Phase = ENTRIES;
  #gaps = 0;
  #streak = 0;

  /** Joins the tail of the topic. */
  constructor(
    shared: FeedShared<A>,
    delivery: Delivery<A>,
    scope: TokenScope,
    args: A,
    signal: AbortSignal,
  ) {
    this.#shared = shared;
    this.delivery = delivery;
    this.#scope = scope;
    this.args = args;
    const { log, options } = shared;
    const { clock, controlIdleMs } = options;
    const tails = tailsOf(log);
    this.#controls =
      controlIdleMs === undefined ? undefined : new FeedControls(clock, controlIdleMs);
    this.subscriber = new Subscriber(
      tails.tail(scope.topic, options),
      tails.pages(options),
      options,
    );
    this.#signal = signal;
    this.#onAbort = () => this.close();
    signal.addEventListener('abort', this.#onAbort);
    if (signal.aborted) this.close();
  }

  /** Fixes the live position, then proves the token against ring or log. Called once, before {@link next}. */
  async start(start: FeedStart): Promise<void> {
    const subscriber = this.subscriber;
    if ((await untilClosed(subscriber.positioned(), this.closing)) === CLOSED) return;
    const { from } = this.#shared.options;
    if (start.kind === 'gap') {
      this.#enterGap(start.refusal.reason, start.token);
    } else if (start.kind === 'resume' && start.fields.kind === 'snapshot') {
      this.#refuse('snapshot', start.token);
    } else if (start.kind === 'resume' || from === 'earliest') {
      const position = start.kind === 'resume' ? positionOf(start.fields) : 'earliest';
      const loss = await untilClosed(subscriber.resume(position), this.closing);
      if (loss === CLOSED) return;
      const token = start.kind === 'resume' ? start.token : undefined;
      if (loss !== undefined) this.#refuse(loss, token);
      else this.#countResume(start.kind === 'resume' ? 'resumed' : 'fresh');
    } else {
      subscriber.startLive();
      this.#countResume('fresh');
    }
    if (this.#controls !== undefined)
      this.#startControl(this.#controls, start.kind === 'fresh' ? undefined : start.token);
  }

  get meter(): Meter {
    return this.#shared.log.observer.meter;
  }

  /** Whether an entry has the same token for all subscribers. */
  get sharesTokens(): boolean {
    return this.#scope.audience === undefined;
  }

  /** Whether something other than entries comes next: a control frame, a snapshot. */
  get hasDetour(): boolean {
    const controls = this.#controls;
    return this.#phase !== ENTRIES || controls?.pending(this.#standing(controls)) === true;
  }

  /** Notes that an entry came, or all had come: gaps are no longer in a row. */
  progressed(): void {
    this.#gaps = 0;
  }

  /** Leaves the topic and lets go of what {@link next} waits for. Idempotent. */
  close(): void {
    if (this.closing.closed) return;
    this.closing.close();
    this.#controls?.close();
    this.subscriber.close();
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#shared.release(this.#scope.topic);
    this.carrier?.closed();
    // A snapshot under way is let go; a generator that is stuck in an await ends when that does.
    if (this.#phase.phase === 'snapshot')
      this.#phase.snapshot.values.return?.().then(ignore, ignore);
  }

  /** Goes one step on, at once where that is possible. Answers a frame where the step made one. */
  next(): MaybePromise<FeedFrame | undefined | typeof IDLE> {
    if (this.hasDetour) return this.detour();
    const taken = this.subscriber.take();
    if (taken === undefined) {
      this.#streak = 0;
      // That there is no more may itself be news.
      if (this.hasDetour) return this.detour();
      if (this.subscriber.isWaiting()) {
        this.progressed();
        return IDLE;
      }
      return untilClosed(this.subscriber.fetch(), this.closing).then(noFrame);
    }
    if (taken instanceof Gap) {
      this.lose(taken);
      return undefined;
    }
    return this.#isLongStreak()
      ? new Promise(setImmediate).then(() => this.#frameOf(taken))
      : this.#frameOf(taken);
  }

  /** Goes one step on, where {@link hasDetour}. */
  async detour(): Promise<FeedFrame | undefined> {
    const controls = this.#controls;
    const control = controls?.take(this.#standing(controls));
    if (controls && control) return this.#control(controls, control);
    const phase = this.#phase;
    switch (phase.phase) {
      case 'gap':
        return this.#openSnapshot(phase.reason, phase.token);
      case 'snapshot':
        return this.#nextOfSnapshot(phase);
      case 'entries':
        return undefined;
      default:
        return phase satisfies never;
    }
  }

  #frameOf(slot: EntrySlot): MaybePromise<FeedFrame | undefined> {
    const value = this.delivery.value(slot, this.args);
    const ready = isPromise(value) ? untilClosed(value, this.closing) : value;
    return chain(ready, (value) => {
      this.progressed();
      return value === SKIPPED || value === CLOSED
        ? undefined
        : { token: this.tokenOf(slot), value };
    });
  }

  /** Counts what was ready at once: a long run of it would never let the process do anything else. */
  #isLongStreak(): boolean {
    this.#streak += 1;
    return this.#streak % YIELD_EVERY === 0;
  }

  /** Enters the snapshot that a loss makes necessary. Throws the refusal where there is none. */
  lose(gap: Gap): void {
    this.#refuse(gap.loss, this.#token('position', this.subscriber.cursor, 0));
  }

  #refuse(reason: FeedReason, token: string | undefined): void {
    this.#countResume(reason);
    if (this.#shared.options.onGap === undefined) throw new FeedRefusal(reason);
    this.#gaps += 1;
    if (this.#gaps > MAX_GAPS) throw new FeedRefusal('unavailable');
    this.#enterGap(reason, token);
  }

  /** Fixes the live position before the snapshot is asked for: what is appended meanwhile comes after it. */
  #enterGap(reason: FeedReason, token: string | undefined): void {
    this.subscriber.startLive();
    this.#phase = { phase: 'gap', reason, token };
  }

  async #openSnapshot(reason: FeedReason, lastEventId: string | undefined): Promise<undefined> {
    const { onGap, shareGap } = this.#shared.options;
    const { logger, meter } = this.#shared.log.observer;
    const gap = { reason, status: new FeedRefusal(reason).status, lastEventId };
    const load = async (): Promise<unknown> => {
      logger.info({ topic: this.#scope.topic, reason }, 'brokerfeed.feed.gap');
      meter.count('brokerfeed.feed.snapshots', 1, { reason });
      return onGap?.({ ...this.args, gap });
    };
    const at = this.subscriber.cursor;
    const snapshot =
      shareGap === undefined
        ? { at, values: snapshotValuesOf(load) }
        : this.#shared.snapshots.join(`${this.#scope.topic}\n${shareGap(this.args)}`, at, load);
    if (snapshot.at !== at) this.subscriber.startAt(snapshot.at);
    const index = firstValueNumber(lastEventId);
    this.#phase = { phase: 'snapshot', snapshot, held: NOTHING_HELD, index };
  }

  /** A value is held back until it is known whether it is the last: only that one's token resumes without a new snapshot. */
  async #nextOfSnapshot(phase: Phase & { phase: 'snapshot' }): Promise<FeedFrame | undefined> {
    const { at, values } = phase.snapshot;
    const next = await untilClosed(values.next(), this.closing);
    if (next === CLOSED) return undefined;
    if (this.#isLongStreak()) await new Promise(setImmediate);
    const { held, index } = phase;
    if (next.done === true) {
      this.#phase = ENTRIES;
      if (held !== NOTHING_HELD) return { token: this.#token('position', at, index), value: held };
      // The client still holds the token that led here: a control frame replaces it.
      return this.#controls && this.#control(this.#controls, 'position');
    }
    phase.held = next.value;
    if (held === NOTHING_HELD) return undefined;
    phase.index += 1;
    return { token: this.#token('snapshot', at, index), value: held };
  }

  #control(controls: FeedControls, feed: FeedControl['feed']): FeedFrame {
    const value: FeedControl = { feed };
    // Inside a snapshot the position alone would skip the rest of it.
    const kind = this.#phase === ENTRIES ? 'position' : 'snapshot';
    return { token: this.#token(kind, this.subscriber.cursor, controls.number()), value };
  }

  /** Signs an entry's token: once for all subscribers, unless tokens are bound to an audience. */
  tokenOf(slot: EntrySlot): string {
    const sign = (): string => this.#token(slot.last ? 'entry' : 'inside', slot.resume, slot.index);
    return this.sharesTokens ? slot.memo(this.#shared.signer, sign) : sign();
  }

  #token(kind: TokenKind, position: Position, index: number): string {
    const { epoch, id, ordinal } = position;
    this.#shared.log.observer.meter.count('brokerfeed.feed.signatures', 1);
    return this.#shared.signer.sign({ kind, epoch, id, ordinal, index }, this.#scope);
  }

  /** Notes that a frame left, and with which token. */
  delivered(token: string): void {
    this.#controls?.delivered(token);
  }

  #countResume(outcome: string): void {
    this.#shared.log.observer.meter.count('brokerfeed.feed.resumes', 1, { outcome });
  }

  #standing(controls: FeedControls): FeedStanding | undefined {
    const standing = this.subscriber.standing(controls.told);
    return standing === 'outage' || this.#phase === ENTRIES ? standing : 'catching-up';
  }

  #startControl(controls: FeedControls, token: string | undefined): void {
    controls.start(token, this.#phase === ENTRIES);
    // Closed while it was started: nobody would end the watch any more.
    if (this.closing.closed) return;
    controls.watchIdle(
      () => (this.hasDetour ? undefined : this.subscriber.cursor),
      () => this.subscriber.wake(),
    );
  }
}

function positionOf(fields: TokenFields): Position {
  return { epoch: fields.epoch, id: fields.id, ordinal: fields.ordinal };
}

async function* snapshotValuesOf(
  load: () => Promise<unknown>,
): AsyncGenerator<unknown, void, void> {
  yield* snapshotValues(await load());
}

function noFrame(): undefined {}

function ignore(): void {}
