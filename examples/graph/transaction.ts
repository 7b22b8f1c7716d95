import type { Graph, GraphEntity, GraphMutation, GraphRelation, NodeData } from './graph.ts';

/** Writes to a graph that stand or fall together. What is impossible throws, and is said to whoever asked for it. */
export class Transaction {
  /** What was done, in order. */
  readonly mutations: GraphMutation[] = [];
  readonly #graph: Graph;
  readonly #undo: (() => void)[] = [];

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  add(entity: GraphEntity): void {
    if (this.#graph.entities.has(entity.id)) throw new Error(`${entity.id} is there already`);
    this.#do({ kind: 'entity', op: 'add', entity });
  }

  update(id: string, data: Partial<NodeData>): void {
    const entity = this.#entity(id);
    const metadata = { ...entity.metadata, ...data };
    this.#do({ kind: 'entity', op: 'update', entity: { ...entity, metadata } });
  }

  /** Removes an entity, and all that leads to it or from it. */
  remove(id: string): void {
    const entity = this.#entity(id);
    for (const relation of [...this.#graph.relations.values()]) {
      if (relation.from === id || relation.to === id) this.unrelate(relation.id);
    }
    this.#do({ kind: 'entity', op: 'remove', entity });
  }

  relate(relation: GraphRelation): void {
    if (this.#graph.relations.has(relation.id)) throw new Error(`${relation.id} is there already`);
    this.#entity(relation.from);
    this.#entity(relation.to);
    this.#do({ kind: 'relation', op: 'relate', relation });
  }

  weigh(id: string, weight: number): void {
    this.#do({
      kind: 'relation',
      op: 'update',
      relation: { ...this.#relation(id), metadata: { weight } },
    });
  }

  unrelate(id: string): void {
    this.#do({ kind: 'relation', op: 'unrelate', relation: this.#relation(id) });
  }

  /** Takes everything back. */
  undo(): void {
    for (const undo of this.#undo.splice(0).reverse()) undo();
  }

  #do(mutation: GraphMutation): void {
    const { entities, relations } = this.#graph;
    this.#undo.push(
      mutation.kind === 'entity'
        ? restoring(entities, mutation.entity.id)
        : restoring(relations, mutation.relation.id),
    );
    this.#graph.apply(mutation);
    this.mutations.push(mutation);
  }

  #entity(id: string): GraphEntity {
    const entity = this.#graph.entities.get(id);
    if (entity === undefined) throw new Error(`there is no ${id}`);
    return entity;
  }

  #relation(id: string): GraphRelation {
    const relation = this.#graph.relations.get(id);
    if (relation === undefined) throw new Error(`there is no ${id}`);
    return relation;
  }
}

function restoring<Value>(rows: Map<string, Value>, id: string): () => void {
  const before = rows.get(id);
  return () => {
    if (before === undefined) rows.delete(id);
    else rows.set(id, before);
  };
}
