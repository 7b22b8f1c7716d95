// Type tests, compiled by `tsc -p tsconfig.test.json`: what the types of a store make of its changes.
import { type Change, type Changes, localChanges } from './index.ts';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(..._proof: Equal<A, B> extends true ? [] : [never]): void => {};

interface Entities {
  readonly person: { readonly name: string };
  readonly place: { readonly x: number };
}
interface Relations {
  readonly knows: { readonly since: number };
}

const typed: Changes<Entities, Relations> = localChanges<Entities, Relations>();
typed.onChange((change) => {
  same<typeof change.generation, number>();
  if (change.kind === 'entity') {
    same<typeof change.op, 'add' | 'update' | 'remove'>();
    if (change.entity.type === 'person')
      same<typeof change.entity.metadata, { readonly name: string }>();
    else same<typeof change.entity.metadata, { readonly x: number }>();
  } else {
    same<typeof change.op, 'relate' | 'unrelate' | 'update'>();
    same<typeof change.relation.metadata, { readonly since: number }>();
    same<typeof change.fromTags, readonly string[] | undefined>();
  }
});

void typed.append([
  { kind: 'entity', op: 'add', entity: { id: 'a', type: 'person', metadata: { name: 'Ann' } } },
  // @ts-expect-error - a place has no name
  { kind: 'entity', op: 'add', entity: { id: 'b', type: 'place', metadata: { name: 'B' } } },
  // @ts-expect-error - an entity is not related
  { kind: 'entity', op: 'relate', entity: { id: 'a', type: 'person', metadata: { name: 'A' } } },
]);

// Without types of its own, every type is one, and metadata has to be looked at.
localChanges().onChange((change) => {
  same<typeof change, Change>();
  if (change.kind !== 'entity') return;
  same<typeof change.entity.type, string>();
  same<typeof change.entity.metadata, unknown>();
});
