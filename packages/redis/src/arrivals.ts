import type { BrokerError, Commit, Position, Sink } from '@brokerfeed/core';
import type { CommitNotice } from './commit-codec.ts';
import type { Watch, WatchEvents } from './live-reader.ts';
import { compareIds } from './stream-id.ts';

type Heard = CommitNotice | undefined;

type State =
  /** The log is read. Null: more was announced than is kept. */
  | { readonly phase: 'holding'; held: Heard[] | null }
  | {
      readonly phase: 'passing';
      readonly watch: Watch;
      readonly stop: (at: Position) => void;
      at: Position;
    };

/** Notices kept while the log is read: of a topic that is written to faster, the next page has the rest. */
const MAX_HELD = 256;

/**
 * What is announced of one topic: kept while the log is read, and passed on as long as each commit is known to follow the
 * one before. A commit is announced in the step that writes it, and the topic is watched before the log is asked: so each
 * commit is in the page, or among what was kept.
 */
export class Arrivals implements WatchEvents {
  readonly #sink: Sink;
  #state: State = { phase: 'holding', held: [] };
  #failure: BrokerError | undefined;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Why nothing more will be announced. */
  get failure(): BrokerError | undefined {
    return this.#failure;
  }

  /** Keeps what is announced from now on. */
  hold(): void {
    this.#state = { phase: 'holding', held: [] };
  }

  /**
   * Passes on what follows a position. Resolves with the position that was reached, when the log must be asked what comes
   * next, nothing more will be announced, or it is stopped.
   */
  pass(from: Position, watch: Watch): Promise<Position> {
    const held = this.#state.phase === 'holding' ? this.#state.held : null;
    return new Promise((resolve) => {
      this.#state = { phase: 'passing', watch, stop: resolve, at: from };
      watch.at = from;
      if (held === null || this.#failure !== undefined) this.stop();
      else if (held.length > 0) this.announced(held);
    });
  }

  stop(): void {
    if (this.#state.phase !== 'passing') return;
    const { watch, stop, at } = this.#state;
    watch.at = undefined;
    this.hold();
    stop(at);
  }

  announced(heard: readonly Heard[]): void {
    const state = this.#state;
    if (state.phase === 'holding') {
      if (state.held !== null && state.held.length + heard.length <= MAX_HELD)
        state.held.push(...heard);
      else state.held = null;
      return;
    }
    const { commits, unsure } = follow(state.at, heard);
    state.at = commits.at(-1)?.position ?? state.at;
    state.watch.at = state.at;
    if (commits.length > 0) this.#sink.commits(commits);
    if (unsure) this.stop();
  }

  moved(): void {
    this.stop();
  }

  broken(error: BrokerError): void {
    this.#failure = error;
    this.stop();
  }
}

/** Takes the commits that are known to follow a position and each other, up to one of which that is not so. */
function follow(from: Position, heard: readonly Heard[]): { commits: Commit[]; unsure: boolean } {
  const commits: Commit[] = [];
  let at = from;
  for (const one of heard) {
    if (one === undefined || one.epoch !== at.epoch) return { commits, unsure: true };
    const { id, ordinal, previousId, entries } = one;
    // The page that was read meanwhile had it. Were it another, the next one would not follow.
    if (ordinal <= at.ordinal && compareIds(id, at.id) <= 0) continue;
    if (entries === undefined || ordinal !== at.ordinal + 1 || previousId !== at.id) {
      return { commits, unsure: true };
    }
    const position: Position = { epoch: at.epoch, id, ordinal };
    commits.push({ previous: at, position, entries });
    at = position;
  }
  return { commits, unsure: false };
}
