import { type Clock, integerOption, systemClock } from '@brokerfeed/core';

/** Options of `drain`. */
export interface DrainOptions {
  /**
   * The time over which clients are moved, in milliseconds: evenly, each at a moment of its own, so that the other instances
   * get them a few at a time.
   * @default 10000
   */
  readonly overMs?: number;
  /**
   * How long a client may still use its old connection once it was told to move, in milliseconds: for calls under way to
   * be answered. Then it is closed.
   * @default 5000
   */
  readonly graceMs?: number;
}

/** What became of the connections that there were. */
export interface DrainReport {
  /** Those that were left by their clients, as they were told or by themselves. */
  readonly moved: number;
  /** Those that were still there after `graceMs`, and were closed. */
  readonly closed: number;
}

/** Something whose clients can be moved to other instances. */
export interface Drainable {
  /**
   * Moves all clients to other instances, before this one is stopped. Take it out of the load balancer at the same time:
   * clients that arrive meanwhile are served, and moved again before `overMs` is over.
   *
   * Resolves once no connection is left, at the latest a second after `overMs + graceMs`; then nobody is let in any more. A
   * second call answers the first one's promise. Throws `OPTION_INVALID`.
   */
  drain(options?: DrainOptions): Promise<DrainReport>;
}

/** One connection, as far as a drain is concerned. Its methods may be called when it is gone. */
export interface DrainMember {
  /** Has the client go elsewhere. */
  move(): void;
  /** Closes the connection. */
  close(): void;
  /** Destroys it, where the client does not answer to that. */
  cut(): void;
}

/** All of it together fits a timer. */
const MAX_SPAN_MS = 2 ** 29;

/** Clients that come while others leave have so long before they are told to go: at once, they might not have subscribed. */
const SETTLE_MS = 1_000;

/** How long closed connections have to say goodbye. */
const GOODBYE_MS = 1_000;

/** The connections of a server, and their end when it is drained. */
export class Drain implements Drainable {
  readonly #clock: Clock;
  readonly #onOver: () => void;
  readonly #members = new Map<DrainMember, { cancel: () => void; closed: boolean }>();
  /** Until when clients are moved, once they are; those that come later are told at once. */
  #moving: { readonly until: number; readonly graceMs: number } | undefined;
  #report: Promise<DrainReport> | undefined;
  #onEmpty: () => void = ignore;
  #moved = 0;
  #closed = 0;

  /** `onOver` is called once, when nobody is to be let in any more. */
  constructor(onOver: () => void = ignore, clock: Clock = systemClock) {
    this.#onOver = onOver;
    this.#clock = clock;
  }

  add(member: DrainMember): void {
    this.#members.set(member, { cancel: ignore, closed: false });
    if (this.#moving === undefined) return;
    const left = Math.max(0, this.#moving.until - this.#clock.now());
    this.#schedule(member, Math.min(left, Math.max(left * Math.random(), SETTLE_MS)));
  }

  /** Notes that a connection is gone. */
  delete(member: DrainMember): void {
    const state = this.#members.get(member);
    if (state === undefined) return;
    state.cancel();
    this.#members.delete(member);
    if (this.#moving !== undefined && !state.closed) this.#moved += 1;
    if (this.#members.size === 0) this.#onEmpty();
  }

  drain(options: DrainOptions = {}): Promise<DrainReport> {
    this.#report ??= this.#drain(
      integerOption('overMs', options.overMs, 10_000, 0, MAX_SPAN_MS),
      integerOption('graceMs', options.graceMs, 5_000, 0, MAX_SPAN_MS),
    );
    return this.#report;
  }

  async #drain(overMs: number, graceMs: number): Promise<DrainReport> {
    this.#moving = { until: this.#clock.now() + overMs, graceMs };
    // A slot of the time for each, and a random moment in it: instances that are drained at once do not keep step.
    const slotMs = overMs / this.#members.size;
    let slot = 0;
    for (const member of this.#members.keys()) {
      this.#schedule(member, slotMs * (slot + Math.random()));
      slot += 1;
    }
    let over = (): void => {
      over = ignore;
      this.#onOver();
    };
    const cancelOver = this.#clock.after(overMs, () => over());
    const cancelCut = this.#clock.after(overMs + graceMs + GOODBYE_MS, () => {
      for (const member of this.#members.keys()) member.cut();
      this.#onEmpty();
    });
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      if (this.#members.size === 0) resolve();
    });
    cancelOver();
    cancelCut();
    this.#moving = { until: 0, graceMs };
    over();
    return { moved: this.#moved, closed: this.#closed };
  }

  #schedule(member: DrainMember, inMs: number): void {
    const state = this.#members.get(member);
    if (state === undefined) return;
    state.cancel = this.#clock.after(inMs, () => {
      // Before the move, which may be the end of it at once.
      state.cancel = this.#clock.after(this.#moving?.graceMs ?? 0, () => {
        state.closed = true;
        this.#closed += 1;
        member.close();
      });
      member.move();
    });
  }
}

function ignore(): void {}
