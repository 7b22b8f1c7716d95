import { initTRPC, type TrackedEnvelope, tracked } from '@trpc/server';
import { expect, test } from 'vitest';
import type { WebSocket } from 'ws';
import { RawClient } from './support/raw-client.ts';
import { startWsServer } from './support/ws-server.ts';

/**
 * What `attachFeeds` leans on in tRPC's WebSocket adapter, each by its name, seen on the adapter alone. None of it is
 * promised by tRPC. Where one changes, feeds still work, through tRPC's own loop: slower, and with no bound on what a slow
 * reader costs. Then this turns red.
 */
interface Sighting {
  readonly what: string;
  /** Synchronous stretches are numbered: what has the same number happened in one. */
  readonly turn: number;
}

/** Serves one subscription on tRPC's adapter alone, and notes what is done to its iterable and on its socket. */
async function sightings(): Promise<{
  readonly seen: readonly Sighting[];
  readonly resolver: Record<string, unknown>;
  readonly texts: readonly string[];
}> {
  const seen: Sighting[] = [];
  let turn = 0;
  let open = false;
  const note = (what: string): void => {
    if (!open) {
      open = true;
      turn += 1;
      // Runs before whatever waits for what is done in this stretch.
      queueMicrotask(() => {
        open = false;
      });
    }
    // How often a thing is done in a row is of no matter.
    if (seen.at(-1)?.what !== what || seen.at(-1)?.turn !== turn) seen.push({ what, turn });
  };
  const values = [envelope(note, 'a'), envelope(note, 'b')];
  let resolver: Record<string, unknown> = {};
  const t = initTRPC.create();
  const router = t.router({
    feed: t.procedure.subscription((opts) => {
      resolver = opts as unknown as Record<string, unknown>;
      const iterator = {
        next() {
          note(`next(), onabort is ${opts.signal?.onabort === null ? 'null' : 'set'}`);
          const value = values.shift();
          return value === undefined
            ? new Promise<never>(() => {})
            : Promise.resolve({ done: false as const, value });
        },
        return: () => Promise.resolve({ done: true as const, value: undefined }),
        get [Symbol.asyncDispose]() {
          note(`asyncDispose read, onabort is ${opts.signal?.onabort === null ? 'null' : 'set'}`);
          return () => Promise.resolve();
        },
      };
      return {
        [Symbol.asyncIterator]() {
          note(`iterator taken, onabort is ${opts.signal?.onabort === null ? 'null' : 'set'}`);
          return iterator;
        },
      };
    }),
  });
  await using server = await startWsServer(router, { attach: false });
  await using client = await RawClient.open(server.url);
  const ws: WebSocket = await server.socket(0);
  const { send } = ws;
  ws.send = (...args: unknown[]) => {
    note(`sent ${typeof args[0]}, with ${args.length} argument`);
    Reflect.apply(send, ws, args);
  };
  client.subscribe(7, 'feed');
  await client.count(3);
  return { seen: [...seen], resolver, texts: [...client.texts] };
}

/** An envelope that notes when its data are read. */
function envelope(note: (what: string) => void, id: string): TrackedEnvelope<number> {
  const made = tracked(id, 1);
  let reads = 0;
  Object.defineProperty(made, 1, {
    get() {
      reads += 1;
      note(`data of ${id} read, time ${reads}`);
      return 1;
    },
  });
  return made;
}

test('the text of started, and that a frame is the id before the result', async () => {
  const { texts } = await sightings();
  expect(texts).toEqual([
    '{"id":7,"result":{"type":"started"}}',
    '{"id":7,"result":{"type":"data","data":{"id":"a","data":1},"id":"a"}}',
    '{"id":7,"result":{"type":"data","data":{"id":"b","data":1},"id":"b"}}',
  ]);
});

test('the iterator is taken in the turn in which started is sent, and asked for its first value there', async () => {
  const { seen } = await sightings();
  const start = seen.slice(0, 4);
  expect(start.map(({ what }) => what)).toEqual([
    'sent string, with 1 argument',
    'iterator taken, onabort is null',
    'asyncDispose read, onabort is null',
    'next(), onabort is set',
  ]);
  expect(new Set(start.map(({ turn }) => turn)).size).toBe(1);
});

test('the data of an envelope are read once, sent, and followed by the next question, in one turn', async () => {
  const { seen } = await sightings();
  for (const [at, id] of ['a', 'b'].entries()) {
    const round = seen.slice(4 + 3 * at, 7 + 3 * at);
    expect(round.map(({ what }) => what)).toEqual([
      `data of ${id} read, time 1`,
      'sent string, with 1 argument',
      'next(), onabort is set',
    ]);
    expect(new Set(round.map(({ turn }) => turn)).size).toBe(1);
  }
});

test("the resolver is shown the router, whose transformer's output is what serializes", async () => {
  const { resolver } = await sightings();
  const router = resolver.router as {
    _def: { _config: { transformer: { output: { serialize: unknown } } } };
  };
  expect(router._def._config.transformer.output.serialize).toBeTypeOf('function');
  expect(resolver.signal).toBeInstanceOf(AbortSignal);
  expect(resolver.getRawInput).toBeTypeOf('function');
});
