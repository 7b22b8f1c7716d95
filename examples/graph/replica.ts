import type { FeedControl } from '@brokerfeed/core/wire';
import { Graph, type GraphChange, type GraphSnapshot } from './graph.ts';

/** What the feed sends. */
export type GraphFrame = GraphChange | FeedControl | { readonly snapshot: GraphSnapshot };

type Phase =
  | { readonly name: 'new' }
  /** The feed stands, and the graph as it was then is on its way: what comes meanwhile has to be applied after it. */
  | { readonly name: 'loading'; readonly held: GraphChange[] }
  | { readonly name: 'live' };

/**
 * A graph that is kept by applying frames. `load` is called once, when the feed first stands, and repeats itself until it
 * has an answer. After a gap the feed sends the whole graph.
 */
export class Replica {
  readonly graph = new Graph();
  readonly #load: () => Promise<GraphSnapshot>;
  #generation = 0;
  /** The place in that commit up to which it holds it. */
  #index = -1;
  #phase: Phase = { name: 'new' };

  constructor(load: () => Promise<GraphSnapshot>) {
    this.#load = load;
  }

  /** The newest commit that the graph is known to hold. */
  get generation(): number {
    return this.#generation;
  }

  /** Takes a frame. Resolves once the graph holds what it says. */
  async receive(frame: GraphFrame): Promise<void> {
    if ('snapshot' in frame) this.#reset(frame.snapshot);
    else if ('feed' in frame) {
      if (frame.feed === 'attached' && this.#phase.name === 'new') await this.#start();
    } else if (this.#phase.name === 'loading') this.#phase.held.push(frame);
    else this.#apply(frame);
  }

  async #start(): Promise<void> {
    const loading: Phase = { name: 'loading', held: [] };
    this.#phase = loading;
    const snapshot = await this.#load();
    // A snapshot of the feed came in between, and is newer.
    if (this.#phase !== loading) return;
    this.#reset(snapshot);
    for (const change of loading.held) this.#apply(change);
  }

  #reset(snapshot: GraphSnapshot): void {
    this.#phase = { name: 'live' };
    this.graph.reset(snapshot);
    this.#generation = snapshot.generation;
    this.#index = Number.POSITIVE_INFINITY;
  }

  /** Applies what did not come before, by its address: a commit that was received in part comes again from its start. */
  #apply(change: GraphChange): void {
    const { generation, index } = change;
    if (generation < this.#generation) return;
    if (generation === this.#generation && index <= this.#index) return;
    this.graph.apply(change);
    this.#generation = generation;
    this.#index = index;
  }
}
