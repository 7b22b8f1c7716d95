import type { Snapshot } from './feed-options.ts';
import type { Position } from './position.ts';

/** A snapshot, and the position as of which it was asked for: what is read from there completes it. */
export interface PositionedSnapshot {
  readonly at: Position;
  readonly values: AsyncIterator<unknown>;
}

/** Reads a snapshot as a series: nothing is an empty one, an iterable its items, all else (a string too) one value. */
export async function* snapshotValues(
  snapshot: Snapshot<unknown>,
): AsyncGenerator<unknown, void, void> {
  if (snapshot === undefined) return;
  if (typeof snapshot === 'object' && snapshot !== null) {
    if (Symbol.asyncIterator in snapshot || Symbol.iterator in snapshot) {
      yield* snapshot as AsyncIterable<unknown> | Iterable<unknown>;
      return;
    }
  }
  yield snapshot;
}

interface Load {
  readonly at: Position;
  readonly values: Promise<readonly unknown[]>;
}

/** Runs of `onGap` under way, by key, for subscribers that may share one. */
export class SnapshotLoads {
  readonly #loads = new Map<string, Load>();

  /**
   * Joins the load under this key, or starts it. A joiner takes over the position of the load, which was fixed before
   * the load began; one from another incarnation of the log is not joined.
   */
  join(key: string, at: Position, load: () => Promise<Snapshot<unknown>>): PositionedSnapshot {
    const running = this.#loads.get(key);
    if (running?.at.epoch === at.epoch) return { at: running.at, values: replayOf(running.values) };
    const fresh: Load = { at, values: collect(load) };
    this.#loads.set(key, fresh);
    const forget = (): void => {
      if (this.#loads.get(key) === fresh) this.#loads.delete(key);
    };
    fresh.values.then(forget, forget);
    return { at, values: replayOf(fresh.values) };
  }
}

async function collect(load: () => Promise<Snapshot<unknown>>): Promise<readonly unknown[]> {
  const values: unknown[] = [];
  for await (const value of snapshotValues(await load())) values.push(value);
  return values;
}

async function* replayOf(values: Promise<readonly unknown[]>): AsyncGenerator<unknown, void, void> {
  yield* await values;
}
