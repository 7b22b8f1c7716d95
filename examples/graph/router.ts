import type { Broker } from '@brokerfeed/core';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { initTRPC } from '@trpc/server';
import { z } from 'zod';
import type { GraphStore } from './graph-store.ts';

/** The topic of the graph's changes. */
export const TOPIC = 'graph';

export interface GraphRouterOptions {
  readonly broker: Broker;
  readonly store: GraphStore;
  /** Signs resume tokens, at least 16 bytes. */
  readonly secret: string;
}

export type GraphRouter = ReturnType<typeof graphRouter>;

const t = initTRPC.create({
  errorFormatter: withFeedErrors(),
  sse: {
    ping: { enabled: true, intervalMs: 5_000 },
    client: { reconnectAfterInactivityMs: 15_000 },
  },
});

const Id = z.string().min(1).max(80);
const Place = { x: z.number(), y: z.number() };
const Node = z.object({
  id: Id,
  type: z.enum(['person', 'place']),
  metadata: z.object({
    label: z.string().min(1).max(80),
    note: z.string().max(2_000),
    tags: z.array(z.string()),
    ...Place,
  }),
});
const Edge = z.object({ id: Id, type: z.enum(['knows', 'visits']), from: Id, to: Id });

/** Makes the router: the feed, the graph as a whole for those who begin, and what changes it. */
export function graphRouter({ broker, store, secret }: GraphRouterOptions) {
  return t.router({
    feed: t.procedure.subscription(
      brokerFeed(broker, TOPIC, {
        decode: store.changes.decode,
        secret,
        // The first frame says `attached`, and carries a position: the graph that is loaded after it misses nothing.
        control: true,
        onGap: () => ({ snapshot: store.snapshot() }),
        shareGap: () => 'everybody',
      }),
    ),
    load: t.procedure.query(() => store.snapshot()),
    add: t.procedure
      .input(Node)
      .mutation(({ input }) => store.transact((write) => write.add(input))),
    update: t.procedure
      .input(
        z.object({
          id: Id,
          ...z.object({ note: z.string().max(2_000), ...Place }).partial().shape,
        }),
      )
      .mutation(({ input: { id, ...data } }) =>
        store.transact((write) => write.update(id, defined(data))),
      ),
    remove: t.procedure
      .input(Id)
      .mutation(({ input }) => store.transact((write) => write.remove(input))),
    relate: t.procedure
      .input(Edge)
      .mutation(({ input }) =>
        store.transact((write) => write.relate({ ...input, metadata: { weight: 1 } })),
      ),
    saveDraft: t.procedure
      .input(z.object({ id: Id, note: z.string().max(2_000) }))
      .mutation(({ input }) => store.saveDraft(input.id, input.note)),
    draftOf: t.procedure.input(Id).query(({ input }) => store.draftOf(input) ?? null),
  });
}

/** Leaves out what was not given. */
function defined<Data extends object>(data: Data): { [Key in keyof Data]: NonNullable<Data[Key]> } {
  return Object.fromEntries(
    Object.entries(data).filter(([, value]) => value !== undefined),
    // Its keys are those that have a value.
  ) as { [Key in keyof Data]: NonNullable<Data[Key]> };
}
