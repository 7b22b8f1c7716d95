import type { GraphStore } from './graph-store.ts';

/** Fills an empty graph with something to look at: one commit. */
export async function seed(store: GraphStore): Promise<void> {
  if (store.snapshot().entities.length > 0) return;
  await store.transact((write) => {
    write.add(node('ann', 'person', 'Ann', 180, 140, ['team']));
    write.add(node('ben', 'person', 'Ben', 420, 110, []));
    write.add(node('cafe', 'place', 'Café', 320, 300, ['open']));
    write.relate({ id: 'ann-ben', type: 'knows', from: 'ann', to: 'ben', metadata: { weight: 1 } });
    write.relate({
      id: 'ann-cafe',
      type: 'visits',
      from: 'ann',
      to: 'cafe',
      metadata: { weight: 2 },
    });
  });
}

function node<Type extends 'person' | 'place'>(
  id: string,
  type: Type,
  label: string,
  x: number,
  y: number,
  tags: readonly string[],
) {
  return { id, type, metadata: { label, note: '', tags, x, y } } as const;
}
