import { memoryBroker, memoryStore } from '@brokerfeed/core/memory';
import { createTRPCClient, httpLink } from '@trpc/client';
import fc from 'fast-check';
import { expect } from 'vitest';
import type { GraphSnapshot } from '../../examples/graph/graph.ts';
import { GraphStore } from '../../examples/graph/graph-store.ts';
import { type GraphFrame, Replica } from '../../examples/graph/replica.ts';
import { graphRouter, TOPIC } from '../../examples/graph/router.ts';
import type { Transaction } from '../../examples/graph/transaction.ts';
import { connect, type Transport } from './client.ts';
import { Moments } from './moments.ts';
import { SECRET } from './router.ts';
import { startServer } from './server.ts';

export const never = (error: unknown): never => expect.fail(String(error));

interface WriteStep {
  readonly step: 'write';
  readonly ops: readonly Op[];
}
export type Step = WriteStep | { readonly step: 'draft' | 'cut' | 'gap' };

interface Op {
  readonly op: 'add' | 'update' | 'remove' | 'relate' | 'weigh' | 'unrelate';
  readonly a: string;
  readonly b: string;
  readonly n: number;
}

const ID = fc.constantFrom('n0', 'n1', 'n2', 'n3');
const OP: fc.Arbitrary<Op> = fc.record({
  op: fc.constantFrom('add', 'add', 'update', 'remove', 'relate', 'relate', 'weigh', 'unrelate'),
  a: ID,
  b: ID,
  n: fc.integer({ min: 0, max: 9 }),
});
export const STEP: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      step: fc.constant('write' as const),
      ops: fc.array(OP, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ step: 'draft' as const }) },
  { weight: 2, arbitrary: fc.constant({ step: 'cut' as const }) },
  { weight: 1, arbitrary: fc.constant({ step: 'gap' as const }) },
);
export const WRITE: Step = {
  step: 'write',
  ops: [
    { op: 'add', a: 'n0', b: 'n1', n: 1 },
    { op: 'add', a: 'n1', b: 'n0', n: 2 },
    { op: 'relate', a: 'n0', b: 'n1', n: 3 },
    { op: 'remove', a: 'n1', b: 'n0', n: 4 },
  ],
};

/** A store that is written to, and a page that holds its graph: what the example is, without a browser. */
export class GraphWorld implements AsyncDisposable {
  readonly #memory = memoryStore();
  readonly #owned: AsyncDisposable[] = [];
  readonly #moments = new Moments();
  readonly #replica: Replica;
  #parts!: {
    readonly store: GraphStore;
    readonly server: Awaited<ReturnType<typeof startServer>>;
    readonly client: ReturnType<typeof connectTo>;
  };
  #subscription: { unsubscribe(): void } | undefined;
  #token: string | undefined;
  loads = 0;
  snapshots = 0;
  gaps = 0;

  private constructor() {
    this.#replica = new Replica(() => {
      this.loads += 1;
      return this.#load();
    });
  }

  static async make(transport: Transport): Promise<GraphWorld> {
    const world = new GraphWorld();
    const broker = world.#broker();
    const store = await GraphStore.open(broker, TOPIC, never);
    const server = world.#own(await startServer(graphRouter({ broker, store, secret: SECRET })));
    const client = world.#own(connectTo(server, transport));
    world.#parts = { store, server, client };
    world.#subscribe();
    await world.#moments.until(
      () => world.#token !== undefined,
      () => 'the feed does not stand',
    );
    return world;
  }

  async take(step: Step): Promise<void> {
    const { store, server } = this.#parts;
    switch (step.step) {
      case 'write':
        return void (await this.#write(step.ops));
      case 'draft':
        return void (await store.saveDraft('n0', 'working state'));
      case 'cut':
        return server.dropSockets();
      case 'gap': {
        // It leaves, and what it misses is trimmed from the log, and from the memory of the server that it comes back to.
        this.#subscription?.unsubscribe();
        for (let n = 0; n < 2; n += 1) {
          await store.transact((write) => write.add(node(crypto.randomUUID())));
        }
        this.#memory.trim(TOPIC, 1);
        await server.restart(graphRouter({ broker: this.#broker(), store, secret: SECRET }));
        this.gaps += 1;
        this.#subscribe();
        const { gaps } = this;
        return this.#moments.until(
          () => this.snapshots === gaps,
          () => `${this.snapshots} snapshots came, not ${gaps}`,
        );
      }
      default:
        return step satisfies never;
    }
  }

  /** Waits until the client has what was written last, which is one frame. Before it came everything else. */
  async settle(): Promise<void> {
    const { store } = this.#parts;
    const generation = await store.transact((write) => write.add(node(crypto.randomUUID())));
    await this.#moments.until(
      () => this.#replica.generation >= generation,
      () => `the page is at commit ${this.#replica.generation}, not at ${generation}`,
    );
  }

  held(): object {
    const { entities, relations } = this.#replica.graph;
    return { entities: sortedById(entities.values()), relations: sortedById(relations.values()) };
  }

  stored(): object {
    const { entities, relations } = sorted(this.#parts.store.snapshot());
    return { entities, relations };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#subscription?.unsubscribe();
    for (const owned of this.#owned.reverse()) await owned[Symbol.asyncDispose]();
  }

  async #write(ops: readonly Op[]): Promise<void> {
    await this.#parts.store.transact((write) => {
      for (const op of ops) tryTo(write, op);
    });
  }

  #subscribe(): void {
    // As a page that comes back does it; tRPC puts a token there itself only while it lives.
    const input = this.#token === undefined ? undefined : { lastEventId: this.#token };
    this.#subscription = this.#parts.client.trpc.feed.subscribe(input as undefined, {
      onData: ({ id, data }: { id: string; data: GraphFrame }) => {
        this.#token = id;
        if ('snapshot' in data) this.snapshots += 1;
        void this.#replica.receive(data).then(() => this.#moments.tell());
        this.#moments.tell();
      },
      onError: never,
    });
  }

  /** Asks until it is answered: the connection may be cut, as that of the feed. */
  async #load(): Promise<GraphSnapshot> {
    const links = [httpLink({ url: this.#parts.server.httpUrl })];
    const { load } = createTRPCClient<ReturnType<typeof graphRouter>>({ links });
    for (;;) {
      try {
        return await load.query();
      } catch {
        await new Promise(setImmediate);
      }
    }
  }

  #broker() {
    return this.#own(memoryBroker({ store: this.#memory }));
  }

  #own<Thing extends AsyncDisposable>(thing: Thing): Thing {
    this.#owned.push(thing);
    return thing;
  }
}

/** Does what is possible: the store refuses the rest. */
function tryTo(write: Transaction, { op, a, b, n }: Op): void {
  const doing = {
    add: () => write.add(node(a, n % 2 === 0 ? [] : [`tag ${n}`])),
    update: () => write.update(a, { x: n }),
    remove: () => write.remove(a),
    relate: () => write.relate(edge(`${a}-${b}`, a, b)),
    weigh: () => write.weigh(`${a}-${b}`, n),
    unrelate: () => write.unrelate(`${a}-${b}`),
  };
  try {
    doing[op]();
  } catch (error) {
    expect(String(error)).toMatch(/there is no|is there already/);
  }
}

export function connectTo(server: Parameters<typeof connect>[0], transport: Transport) {
  return connect<ReturnType<typeof graphRouter>>(server, transport);
}

export function node(id: string, tags: readonly string[] = []) {
  return { id, type: 'person', metadata: { label: id, note: '', tags, x: 0, y: 0 } } as const;
}

export function edge(id: string, from: string, to: string, weight = 1) {
  return { id, type: 'knows', from, to, metadata: { weight } } as const;
}

export function sorted({ generation, entities, relations }: GraphSnapshot): GraphSnapshot {
  return { generation, entities: sortedById(entities), relations: sortedById(relations) };
}

function sortedById<Row extends { readonly id: string }>(rows: Iterable<Row>): Row[] {
  return [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
}
