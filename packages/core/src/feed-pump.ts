import { SKIPPED } from './delivery.ts';
import type { FeedFrame, FeedSession } from './feed-session.ts';
import { chain, Eventual, isPromise, type MaybePromise } from './maybe-promise.ts';
import type { EncodedRun, PushTarget } from './push-target.ts';
import type { Run } from './run.ts';
import { scheduler, type Turn } from './scheduler.ts';
import type { EntrySlot } from './slot.ts';
import { Gap, type Wakeable } from './subscriber.ts';

/** Entries that are pushed in one turn at most, unless a single run has more. */
const MAX_TURN_ENTRIES = 1024;

/** Values in a row that one subscription may wait for before other work of the process gets its turn. */
const MAX_AWAITED = 16;

type Frame = string | typeof SKIPPED;

interface PushedRun extends EncodedRun {
  readonly frames: string[];
  /** The last entry that has a frame. */
  last: EntrySlot | undefined;
  /** What ends the feed after these frames. */
  failure: { readonly error: unknown } | undefined;
}

/** Whom a pump tells that its feed cannot go on. */
interface PumpOwner {
  fail(error: unknown): void;
}

/**
 * Pushes the frames of one subscription to a connection: a run of entries a turn, encoded once for all subscribers that
 * get the same. It stops at a full connection and goes on from its cursor when that has drained, from the ring or the log.
 */
export class FeedPump<A extends object> implements Turn, Wakeable {
  readonly #session: FeedSession<A>;
  readonly #target: PushTarget;
  readonly #owner: PumpOwner;
  /** Under what this feed keeps the frames that its subscribers share. */
  readonly #encoding: object;
  #state: 'idle' | 'queued' | 'waiting' | 'ended' = 'idle';

  constructor(session: FeedSession<A>, target: PushTarget, owner: PumpOwner) {
    this.#session = session;
    this.#target = target;
    this.#owner = owner;
    this.#encoding = session.delivery.encodingBy(target.encoder);
  }

  start(): void {
    this.#session.meter.count('brokerfeed.feed.pushed', 1);
    this.#session.subscriber.reader = this;
    this.#queue();
  }

  woken(): void {
    if (this.#state === 'idle') this.#queue();
  }

  stop(): void {
    this.#state = 'ended';
  }

  turn(): void {
    if (this.#state !== 'queued') return;
    try {
      const next = this.#advance();
      if (next === 'again') this.#queue();
      else if (next === 'idle') this.#state = 'idle';
      else this.#wait(next);
    } catch (error) {
      this.#end(error);
    }
  }

  /**
   * Goes on by runs that are encoded already, and by one that is not: a herd that reads the same pages has them written at
   * once. Answers whether there may be more, whether the tail will wake us, or what to wait for.
   */
  #advance(): 'again' | 'idle' | Promise<void> {
    const session = this.#session;
    for (let entries = 0; ; ) {
      if (this.#target.isFull()) {
        session.meter.count('brokerfeed.feed.paused', 1);
        return new Promise((resolve) => this.#target.whenWritable(resolve));
      }
      if (session.hasDetour) return session.detour().then((frame) => this.#pushOne(frame));
      const taken = session.subscriber.takeRun();
      if (taken === undefined) {
        // That there is no more may itself be news.
        if (session.hasDetour) continue;
        if (!session.subscriber.isWaiting()) return session.subscriber.fetch();
        session.progressed();
        return 'idle';
      }
      if (taken instanceof Gap) {
        session.lose(taken);
        return 'again';
      }
      const known = this.#encodedBefore(taken);
      const encoded = known ?? this.#encode(taken);
      if (isPromise(encoded)) return encoded.then((run) => this.#push(run));
      this.#push(encoded);
      // Most runs are the newest there are: a turn that finds nothing is saved.
      if (session.subscriber.isAtTip && !session.hasDetour) return 'idle';
      entries += taken.slots.length;
      if (known === undefined || entries >= MAX_TURN_ENTRIES) return 'again';
    }
  }

  #queue(): void {
    this.#state = 'queued';
    scheduler.add(this);
  }

  #wait(work: Promise<void>): void {
    this.#state = 'waiting';
    work.then(
      () => {
        if (this.#state === 'waiting') this.#queue();
      },
      (error) => this.#end(error),
    );
  }

  #end(error: unknown): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#owner.fail(error);
  }

  #pushOne(frame: FeedFrame | undefined): void {
    if (frame === undefined || this.#state === 'ended') return;
    const text = this.#target.encoder.encode(frame.token, frame.value);
    this.#target.write({ frames: [text], assembled: undefined });
    this.#session.delivered(frame.token);
  }

  #push(run: PushedRun): void {
    if (this.#state === 'ended') return;
    this.#session.progressed();
    if (run.frames.length > 0) this.#target.write(run);
    if (run.last !== undefined) this.#session.delivered(this.#session.tokenOf(run.last));
    if (run.failure !== undefined) throw run.failure.error;
  }

  /** Answers what another subscriber has had encoded. */
  #encodedBefore(run: Run): PushedRun | undefined {
    const kept = run.kept(this.#encoding);
    const encoded = kept instanceof Eventual ? (kept as Eventual<PushedRun>).get() : undefined;
    return encoded === undefined || isPromise(encoded) ? undefined : encoded;
  }

  #encode(run: Run): MaybePromise<PushedRun> {
    const { delivery, sharesTokens } = this.#session;
    if (!delivery.isWhole || !sharesTokens) return this.#encodeSlots(run, undefined);
    const shared = run
      .memo(this.#encoding, () => new Eventual(this.#encodeSlots(run, new Map())))
      .get();
    // While its values are made, those that are there can leave: the frames are shared all the same.
    return isPromise(shared) ? this.#encodeSlots(run, undefined) : shared;
  }

  #encodeSlots(run: Run, assembled: Map<string, Uint8Array> | undefined): MaybePromise<PushedRun> {
    const pushed: PushedRun = {
      frames: [],
      assembled,
      last: undefined,
      failure: undefined,
    };
    return chain(this.#encodeFrom(run.slots, 0, pushed), () => pushed);
  }

  /** Encodes the slots from `index` on, at once as long as their values are there at once, up to one that ends the feed. */
  #encodeFrom(slots: readonly EntrySlot[], index: number, into: PushedRun): MaybePromise<void> {
    for (let at = index; at < slots.length; at += 1) {
      const slot = slots[at] as EntrySlot;
      let frame: MaybePromise<Frame>;
      try {
        frame = this.#frameOf(slot);
      } catch (error) {
        into.failure = { error };
        return;
      }
      if (isPromise(frame)) {
        this.#pushEarly(into);
        return frame.then(
          (ready) => {
            this.#add(slot, ready, into);
            return this.#encodeOn(slots, at + 1, into);
          },
          (error) => {
            into.failure = { error };
          },
        );
      }
      this.#add(slot, frame, into);
    }
  }

  /** Encodes on after a value that took its time, and lets others have theirs: the scheduler does not see this work. */
  #encodeOn(slots: readonly EntrySlot[], index: number, into: PushedRun): MaybePromise<void> {
    // What is assembled others need, whole.
    if (this.#state === 'ended' && into.assembled === undefined) return;
    if (index % MAX_AWAITED !== 0) return this.#encodeFrom(slots, index, into);
    return new Promise(setImmediate).then(() => this.#encodeFrom(slots, index, into));
  }

  /** Sends what is there before one waits: a value that takes its time holds up those behind it, not those before. */
  #pushEarly(run: PushedRun): void {
    // One that is assembled is for others too, and whole.
    if (run.assembled !== undefined || run.frames.length === 0) return;
    this.#push({ ...run, frames: run.frames.splice(0), failure: undefined });
  }

  #frameOf(slot: EntrySlot): MaybePromise<Frame> {
    const { delivery, args } = this.#session;
    if (!delivery.isShared)
      return chain(delivery.value(slot, args), (value) => this.#frame(slot, value));
    const passes = delivery.passes(slot, args);
    if (passes === true) return this.#sharedFrame(slot);
    return chain(passes, (passed) => (passed ? this.#sharedFrame(slot) : SKIPPED));
  }

  #sharedFrame(slot: EntrySlot): MaybePromise<Frame> {
    const { delivery, sharesTokens } = this.#session;
    if (!sharesTokens)
      return chain(delivery.sharedValue(slot), (value) => this.#frame(slot, value));
    const kept = slot.memo(this.#encoding, () => {
      const frame = chain(delivery.valueOnce(slot), (value) => this.#frame(slot, value));
      return isPromise(frame) ? new Eventual(frame) : frame;
    });
    return kept instanceof Eventual ? kept.get() : kept;
  }

  #frame(slot: EntrySlot, value: unknown): Frame {
    if (value === SKIPPED) return SKIPPED;
    const session = this.#session;
    return session.delivery.frame(slot, value, session.tokenOf(slot), this.#target.encoder);
  }

  #add(slot: EntrySlot, frame: Frame, into: PushedRun): void {
    if (frame === SKIPPED) return;
    into.frames.push(frame);
    into.last = slot;
  }
}
