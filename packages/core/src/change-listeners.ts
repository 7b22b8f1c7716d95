import type { Change } from './change.ts';
import { changeOf } from './change.ts';
import { isPromise } from './maybe-promise.ts';
import type { Logger } from './observer.ts';

/** Hears each change after its commit. What it answers is looked at by nobody; a promise is not waited for. */
export type ChangeListener<Entities, Relations> = (change: Change<Entities, Relations>) => unknown;

/** Who listens in this process. Changes are made for them, from the texts that every other reader gets, only if there are any. */
export class ChangeListeners<Entities, Relations> {
  readonly #listeners = new Set<ChangeListener<Entities, Relations>>();
  readonly #logger: Logger;
  readonly #waiting: Change<Entities, Relations>[] = [];
  #state: 'idle' | 'delivering' = 'idle';

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  get some(): boolean {
    return this.#listeners.size > 0;
  }

  /** Adds a listener. Returns what removes it. */
  add(listener: ChangeListener<Entities, Relations>): () => void {
    // A function of its own: the same listener may be added twice, and is removed once.
    const own: ChangeListener<Entities, Relations> = (change) => listener(change);
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  /** Tells all of a commit. */
  deliver(texts: readonly string[], generation: number): void {
    if (!this.some) return;
    for (const [index, value] of texts.entries()) {
      const change = changeOf<Entities, Relations>({ value, generation, index });
      if (change !== undefined) this.#waiting.push(change);
    }
    // A listener that writes comes here again: everybody hears the rest of this commit before they hear of that one.
    if (this.#state === 'delivering') return;
    this.#state = 'delivering';
    for (let change = this.#waiting.shift(); change; change = this.#waiting.shift())
      this.#tell(change);
    this.#state = 'idle';
  }

  #tell(change: Change<Entities, Relations>): void {
    for (const listener of [...this.#listeners]) {
      // Removed by one that was told before it.
      if (!this.#listeners.has(listener)) continue;
      try {
        const heard = listener(change);
        if (isPromise(heard)) Promise.resolve(heard).catch((error) => this.#failed(change, error));
      } catch (error) {
        this.#failed(change, error);
      }
    }
  }

  /** The write is done: nobody who hears of it can make it fail, or keep it from the others. */
  #failed({ generation, index }: Change<Entities, Relations>, error: unknown): void {
    this.#logger.error({ err: error, generation, index }, 'brokerfeed.changes.listener');
  }
}
