import { SKIPPED } from './delivery.ts';
import type { FeedFrame, FeedSession } from './feed-session.ts';
import { chain, Eventual, isPromise, type MaybePromise } from './maybe-promise.ts';
import type { EncodedRun, PushTarget } from './push-target.ts';
import type { Run } from './run.ts';
import { scheduler, type Turn } from './scheduler.ts';
import type { EntrySlot } from './slot.ts';
import { Gap } from './subscriber.ts';

type Frame = Uint8Array | typeof SKIPPED;

interface PushedRun extends EncodedRun {
  readonly frames: Uint8Array[];
  lastToken: string | undefined;
  /** What ends the feed after these frames. */
  failure: { readonly error: unknown } | undefined;
}

/**
 * Pushes the frames of one subscription to a connection: a run of entries a turn, encoded once for all subscribers that
 * get the same. It stops at a full connection and goes on from its cursor when that has drained, from the ring or the log.
 */
export class FeedPump<A extends object> implements Turn {
  readonly #session: FeedSession<A>;
  readonly #target: PushTarget;
  readonly #onEnd: (error: unknown) => void;
  /** Under what this feed keeps the frames that its subscribers share. */
  readonly #encoding: object;
  #state: 'idle' | 'queued' | 'waiting' | 'ended' = 'idle';

  /** `onEnd` is called once if the feed cannot go on. */
  constructor(session: FeedSession<A>, target: PushTarget, onEnd: (error: unknown) => void) {
    this.#session = session;
    this.#target = target;
    this.#onEnd = onEnd;
    this.#encoding = session.delivery.encodingBy(target.encoder);
  }

  start(): void {
    this.#session.meter.count('brokerfeed.feed.pushed', 1);
    this.#session.subscriber.onWake = () => {
      if (this.#state === 'idle') this.#queue();
    };
    this.#queue();
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

  /** Goes on by one run. Answers whether there may be more, whether the tail will wake us, or what to wait for. */
  #advance(): 'again' | 'idle' | Promise<void> {
    const session = this.#session;
    if (this.#target.isFull()) {
      session.meter.count('brokerfeed.feed.paused', 1);
      return new Promise((resolve) => this.#target.whenWritable(resolve));
    }
    if (session.hasDetour) return session.step().then((frame) => this.#pushOne(frame));
    const taken = session.subscriber.takeRun();
    if (taken === undefined) {
      return session.subscriber.isWaiting() ? 'idle' : session.subscriber.wait();
    }
    if (taken instanceof Gap) {
      session.lose(taken);
      return 'again';
    }
    const encoded = this.#encode(taken);
    if (isPromise(encoded)) return encoded.then((run) => this.#push(run));
    this.#push(encoded);
    // Most runs are the newest there are: a turn that finds nothing is saved.
    return session.subscriber.isAtTip && !session.hasDetour ? 'idle' : 'again';
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
    this.#onEnd(error);
  }

  #pushOne(frame: FeedFrame | undefined): void {
    if (frame === undefined || this.#state === 'ended') return;
    const bytes = this.#target.encoder.encode(frame.token, frame.value);
    this.#target.write({ frames: [bytes], assembled: undefined });
    this.#session.delivered(frame.token);
  }

  #push(run: PushedRun): void {
    if (this.#state === 'ended') return;
    this.#session.progressed();
    if (run.frames.length > 0) this.#target.write(run);
    if (run.lastToken !== undefined) this.#session.delivered(run.lastToken);
    if (run.failure !== undefined) throw run.failure.error;
  }

  #encode(run: Run): MaybePromise<PushedRun> {
    const { delivery, sharesTokens } = this.#session;
    if (!delivery.isWhole || !sharesTokens) return this.#encodeSlots(run, undefined);
    return run.memo(this.#encoding, () => new Eventual(this.#encodeSlots(run, new Map()))).get();
  }

  #encodeSlots(run: Run, assembled: Map<string, Uint8Array> | undefined): MaybePromise<PushedRun> {
    const pushed: PushedRun = {
      frames: [],
      assembled,
      lastToken: undefined,
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
        return frame.then(
          (ready) => {
            this.#add(slot, ready, into);
            return this.#encodeFrom(slots, at + 1, into);
          },
          (error) => {
            into.failure = { error };
          },
        );
      }
      this.#add(slot, frame, into);
    }
  }

  #frameOf(slot: EntrySlot): MaybePromise<Frame> {
    const { delivery, args, sharesTokens } = this.#session;
    if (!delivery.isShared)
      return chain(delivery.value(slot, args), (value) => this.#frame(slot, value));
    return chain(delivery.passes(slot, args), (passes) => {
      if (!passes) return SKIPPED;
      const make = (): MaybePromise<Frame> =>
        chain(delivery.sharedValue(slot), (value) => this.#frame(slot, value));
      return sharesTokens ? slot.memo(this.#encoding, () => new Eventual(make())).get() : make();
    });
  }

  #frame(slot: EntrySlot, value: unknown): Frame {
    if (value === SKIPPED) return SKIPPED;
    const { encoder } = this.#target;
    const { delivery } = this.#session;
    return delivery.encoded(slot, () => encoder.encode(this.#session.tokenOf(slot), value));
  }

  #add(slot: EntrySlot, frame: Frame, into: PushedRun): void {
    if (frame === SKIPPED) return;
    into.frames.push(frame);
    into.lastToken = this.#session.tokenOf(slot);
  }
}
