import type { Change, ChangedEntity, ChangedRelation, Mutation } from '@brokerfeed/core';

/** What is kept of a node. */
export interface NodeData {
  readonly label: string;
  readonly note: string;
  readonly tags: readonly string[];
  readonly x: number;
  readonly y: number;
}

/** The entity types, with the metadata of each. */
export interface Entities {
  readonly person: NodeData;
  readonly place: NodeData;
}

/** The relation types, with the metadata of each. */
export interface Relations {
  readonly knows: { readonly weight: number };
  readonly visits: { readonly weight: number };
}

export type GraphEntity = ChangedEntity<Entities>;
export type GraphRelation = ChangedRelation<Relations>;
export type GraphMutation = Mutation<Entities, Relations>;
export type GraphChange = Change<Entities, Relations>;

/** A whole graph, as of a commit or later. */
export interface GraphSnapshot {
  readonly generation: number;
  readonly entities: readonly GraphEntity[];
  readonly relations: readonly GraphRelation[];
}

/** A graph in memory. The store and every page hold one, and apply the same mutations to it. */
export class Graph {
  readonly entities = new Map<string, GraphEntity>();
  readonly relations = new Map<string, GraphRelation>();

  /** Applies one mutation. It brings all that is needed, and applying it again changes nothing. */
  apply(mutation: GraphMutation): void {
    if (mutation.kind === 'entity') {
      const { op, entity } = mutation;
      if (op === 'remove') this.entities.delete(entity.id);
      else this.entities.set(entity.id, entity);
    } else {
      const { op, relation } = mutation;
      if (op === 'unrelate') this.relations.delete(relation.id);
      else this.relations.set(relation.id, relation);
    }
  }

  reset({ entities, relations }: Omit<GraphSnapshot, 'generation'>): void {
    this.entities.clear();
    this.relations.clear();
    for (const entity of entities) this.entities.set(entity.id, entity);
    for (const relation of relations) this.relations.set(relation.id, relation);
  }
}
