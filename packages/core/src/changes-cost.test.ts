import { afterEach, describe, expect, test, vi } from 'vitest';
import { settled } from '../test/support/feed-rig.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import { ScriptedLog } from '../test/support/scripted-log.ts';
import type { Change, Mutation } from './change.ts';
import { changes, localChanges } from './changes.ts';
import { Feed } from './feed.ts';
import { memoryBroker } from './memory/index.ts';

const TOPIC = 'graph';
const COUNT = 10;

afterEach(() => vi.restoreAllMocks());

describe('a write that nobody listens to', () => {
  test('is made into no text where there is no log, and with one into what the log gets', async () => {
    const local = localChanges();
    const told: Change[] = [];
    const written = counted();
    for (let n = 0; n < COUNT; n += 1) await local.append([written.mutation]);
    expect(written.count).toBe(0);
    const off = local.onChange((change) => told.push(change));
    await local.append([written.mutation]);
    off();
    await local.append([written.mutation]);
    expect([written.count, told.length]).toEqual([1, 1]);

    await using broker = memoryBroker();
    const store = changes(broker, TOPIC);
    for (let n = 0; n < COUNT; n += 1) await store.append([written.mutation]);
    expect(written.count).toBe(1 + COUNT);
  });

  test('is made into no change', async () => {
    await using broker = memoryBroker();
    const store = changes(broker, TOPIC);
    const parse = vi.spyOn(JSON, 'parse');
    for (let n = 0; n < COUNT; n += 1) await store.append([thing('a'), thing('b')]);
    expect(parse).not.toHaveBeenCalled();
    store.onChange(() => {});
    store.onChange(() => {});
    await store.append([thing('a'), thing('b')]);
    // One for each change, however many listen.
    expect(parse).toHaveBeenCalledTimes(2);
  });
});

describe('a subscriber', () => {
  test('costs the entries that it reads, and not those of other topics', async () => {
    await using broker = memoryBroker();
    const log = new ScriptedLog(broker.log);
    const decoded: string[] = [];
    const feed = new Feed(log, {
      decode: (text, { topic }) => {
        decoded.push(topic);
        return text;
      },
      lingerMs: 0,
    });
    const left = new AbortController();
    const open = (topic: string) =>
      feed.open({ topic, lastEventId: '', args: {}, signal: left.signal });
    const reader = await open(TOPIC);
    for (let n = 0; n < COUNT; n += 1) {
      await log.append('another topic', 'x');
      await log.append(TOPIC, 'x');
    }
    await settled();
    // Nothing is decoded before it is read.
    expect(decoded).toEqual([]);
    await reader.next();
    expect(decoded).toEqual([TOPIC]);
    left.abort();
  });

  test('asks a quiet log for nothing, however long it waits', async () => {
    const clock = new ManualClock();
    await using broker = memoryBroker();
    const log = new ScriptedLog(broker.log);
    const feed = new Feed(log, { clock, lingerMs: 0 });
    const left = new AbortController();
    const reader = await feed.open({
      topic: TOPIC,
      lastEventId: '',
      args: {},
      signal: left.signal,
    });
    const next = reader.next();
    await settled();
    // Where the log ends, and the live read.
    expect([log.pages, log.follows]).toEqual([1, 1]);
    for (let hour = 0; hour < 24; hour += 1) {
      clock.advance(3_600_000);
      await settled();
    }
    expect(clock.waits).toEqual([]);
    await log.append(TOPIC, '"told"');
    expect(await next).toMatchObject({ value: 'told' });
    expect([log.pages, log.follows]).toEqual([1, 1]);
    left.abort();
  });
});

function thing(id: string): Mutation {
  return { kind: 'entity', op: 'add', entity: { id, type: 'thing', metadata: { id } } };
}

/** A mutation that counts how often it is written. */
function counted(): { readonly mutation: Mutation; readonly count: number } {
  let count = 0;
  const metadata = {
    toJSON() {
      count += 1;
      return {};
    },
  };
  const mutation: Mutation = {
    kind: 'entity',
    op: 'add',
    entity: { id: 'a', type: 'thing', metadata },
  };
  return {
    mutation,
    get count() {
      return count;
    },
  };
}
