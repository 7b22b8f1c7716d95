import { type Broker, type Changes, changes } from '@brokerfeed/core';
import { type Entities, Graph, type GraphSnapshot, type Relations } from './graph.ts';
import { Transaction } from './transaction.ts';

/**
 * The store: a graph in memory, which is made anew from its log when the process starts. One process writes it, so that its
 * listeners hear of every write, and the order of its commits is that of the log.
 */
export class GraphStore {
  readonly changes: Changes<Entities, Relations>;
  readonly #graph = new Graph();
  readonly #onLost: (error: unknown) => void;
  /** Notes that are being typed. They live as long as the process: working state, of which nobody is told. */
  readonly #drafts = new Map<string, string>();
  #generation = 0;

  private constructor(broker: Broker, topic: string, onLost: (error: unknown) => void) {
    this.#onLost = onLost;
    this.changes = changes(broker, topic, {
      tagsOf: (id) => this.#graph.entities.get(id)?.metadata.tags,
    });
  }

  /**
   * Makes the graph of what its log holds. `onLost` is called when a commit did not get into the log, for all that is known:
   * the graph in memory is then of no use, and has to be made anew.
   */
  static async open(
    broker: Broker,
    topic: string,
    onLost: (error: unknown) => void,
  ): Promise<GraphStore> {
    const store = new GraphStore(broker, topic, onLost);
    for await (const change of store.changes.replay()) {
      store.#graph.apply(change);
      store.#generation = change.generation;
    }
    return store;
  }

  /** The newest commit that is in the log. */
  get generation(): number {
    return this.#generation;
  }

  /** The whole graph as it is now: what is in the log, and perhaps what is on its way there. */
  snapshot(): GraphSnapshot {
    return {
      generation: this.#generation,
      entities: [...this.#graph.entities.values()],
      relations: [...this.#graph.relations.values()],
    };
  }

  /**
   * Runs writes as one commit, and announces it. Rejects, with nothing done, where one of them is impossible. Resolves with
   * the generation once the log has it.
   */
  async transact(write: (transaction: Transaction) => void): Promise<number> {
    const transaction = new Transaction(this.#graph);
    try {
      write(transaction);
    } catch (error) {
      transaction.undo();
      throw error;
    }
    return this.#announced(this.changes.append(() => transaction.mutations));
  }

  /** Keeps a note that is being typed. The generation goes on, and no page is told. */
  saveDraft(id: string, note: string): Promise<number> {
    this.#drafts.set(id, note);
    return this.#announced(this.changes.append([], { retention: 'latest-only' }));
  }

  draftOf(id: string): string | undefined {
    return this.#drafts.get(id);
  }

  async #announced(appending: Promise<number>): Promise<number> {
    const generation = await appending.catch((error) => {
      this.#onLost(error);
      throw error;
    });
    // Calls that nobody waits for may be answered in any order.
    this.#generation = Math.max(this.#generation, generation);
    return generation;
  }
}
