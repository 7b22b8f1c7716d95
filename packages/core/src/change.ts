import { checkValue } from './append-check.ts';
import { describe } from './describe.ts';
import { BrokerError } from './errors.ts';

/** An entity as a change describes it: whole, so that nobody has to read it. `Kinds` maps its types to their metadata. */
export type ChangedEntity<Kinds = Record<string, unknown>> = {
  readonly [Type in keyof Kinds & string]: {
    readonly id: string;
    readonly type: Type;
    readonly subtype?: string;
    /** The service that wrote it. */
    readonly service?: string;
    /** All that the store keeps of it besides; of one that was removed, what it kept last. */
    readonly metadata: Kinds[Type];
  };
}[keyof Kinds & string];

/** A relation as a change describes it. */
export type ChangedRelation<Kinds = Record<string, unknown>> = {
  readonly [Type in keyof Kinds & string]: {
    /** Its own, not that of an endpoint. */
    readonly id: string;
    readonly type: Type;
    /** The id of the entity that it leads from. */
    readonly from: string;
    /** The id of the entity that it leads to. */
    readonly to: string;
    readonly subtype?: string;
    readonly service?: string;
    readonly metadata: Kinds[Type];
  };
}[keyof Kinds & string];

/** What was done to an entity. */
export interface EntityMutation<Entities = Record<string, unknown>> {
  readonly kind: 'entity';
  readonly op: 'add' | 'update' | 'remove';
  readonly entity: ChangedEntity<Entities>;
}

/** What was done to a relation. */
export interface RelationMutation<Relations = Record<string, unknown>> {
  readonly kind: 'relation';
  readonly op: 'relate' | 'unrelate' | 'update';
  readonly relation: ChangedRelation<Relations>;
  /** The tags of the entity it leads from; absent where that has none, or is gone. */
  readonly fromTags?: readonly string[];
  /** The tags of the entity it leads to; absent where that has none, or is gone. */
  readonly toTags?: readonly string[];
}

/** One thing that a commit of the store did. */
export type Mutation<Entities = Record<string, unknown>, Relations = Record<string, unknown>> =
  | EntityMutation<Entities>
  | RelationMutation<Relations>;

/** Where a change stands: the pair names it for ever, so that repeats can be told. */
export interface ChangeAddress {
  /** The commit that it belongs to. All mutations of a transaction have the same. */
  readonly generation: number;
  /** Its place in the commit, from 0. */
  readonly index: number;
}

/** A mutation that was committed: what listeners hear and clients get, the same for both. */
export type Change<
  Entities = Record<string, unknown>,
  Relations = Record<string, unknown>,
> = Mutation<Entities, Relations> & ChangeAddress;

/** The entry of a commit that no reader is told of. */
export const SILENT_ENTRY = '{"kind":"silent"}';

const OPS = {
  entity: ['add', 'update', 'remove'],
  relation: ['relate', 'unrelate', 'update'],
} as const;

/** Makes the text of a mutation that was checked. Throws `VALUE_INVALID`. */
export function encodeMutation(mutation: object): string {
  let text: unknown;
  try {
    text = JSON.stringify(mutation);
  } catch (error) {
    throw new BrokerError('VALUE_INVALID', `a mutation has no JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
  checkValue(text);
  return text;
}

/**
 * Makes the change of an entry, or answers undefined for a commit that told nobody. Throws `VALUE_INVALID` for an entry
 * that is no change. `Entities` and `Relations` are what the writer was typed with: their metadata is not looked at.
 */
export function changeOf<Entities = Record<string, unknown>, Relations = Record<string, unknown>>(
  entry: ChangeAddress & { readonly value: string },
): Change<Entities, Relations> | undefined {
  if (entry.value === SILENT_ENTRY) return undefined;
  let mutation: unknown;
  try {
    mutation = JSON.parse(entry.value);
  } catch (error) {
    throw new BrokerError('VALUE_INVALID', 'a change is not JSON', { cause: error });
  }
  checkMutation(mutation);
  const { generation, index } = entry;
  // What the types say of metadata is between the store and its readers.
  return { ...(mutation as Mutation<Entities, Relations>), generation, index };
}

/** Refuses what {@link changeOf} would not take. Throws `VALUE_INVALID`. */
export function checkMutation(mutation: unknown): asserts mutation is Mutation {
  const { kind, op } = isObject(mutation) ? mutation : {};
  if (kind !== 'entity' && kind !== 'relation')
    refuse("a change is of kind 'entity' or 'relation'", kind);
  const ops: readonly unknown[] = OPS[kind];
  if (!ops.includes(op)) refuse(`the op of a change of kind '${kind}' is ${ops.join(', ')}`, op);
  const view = (mutation as Record<string, unknown>)[kind];
  if (!isObject(view)) refuse(`a change of kind '${kind}' has its ${kind}`, view);
  const names = kind === 'entity' ? ['id', 'type'] : ['id', 'type', 'from', 'to'];
  for (const name of names) {
    const text = view[name];
    if (typeof text !== 'string' || text === '') refuse(`${kind}.${name} is a text`, text);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function refuse(rule: string, value: unknown): never {
  throw new BrokerError('VALUE_INVALID', `${rule}, not ${describe(value)}`);
}
