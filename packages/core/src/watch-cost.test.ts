import { describe, expect, test } from 'vitest';
import { settled } from '../test/support/feed-rig.ts';
import { ScriptedLog } from '../test/support/scripted-log.ts';
import type { Commit } from './broker.ts';
import { announce, type Watch, type WatchItem, watch } from './index.ts';
import { memoryBroker } from './memory/index.ts';
import { tailsOf } from './tails.ts';

// What watches cost: nothing without one, one live read and one object for each event with any number.

const T = 'orders';

test('an append that nobody watches is read by nobody: not before the first watch, and not after the last', async () => {
  await using broker = memoryBroker();
  const log = new ScriptedLog(broker.log);
  const counted = { ...broker, log };
  let made = 0;
  let delivered = 0;
  const follow = log.follow;
  log.follow = (topic, from, sink, signal) => {
    const commits = (list: readonly Commit[]): void => {
      delivered += list.length;
      sink.commits(list);
    };
    return follow(topic, from, { live: () => sink.live(), commits }, signal);
  };
  const write = async (): Promise<void> => {
    await log.append(T, 'a');
    announce(counted, T, () => {
      made += 1;
      return 'b';
    });
    await settled();
  };
  const costs = () => ({ made, delivered, pages: log.pages, reads: log.reads });

  await write();
  expect(costs()).toEqual({ made: 0, delivered: 0, pages: 0, reads: 0 });

  const one = await watch(counted, T, { lingerMs: 0 });
  const other = await watch(counted, T, { lingerMs: 0 });
  await log.untilReads(1);
  await write();
  expect(costs()).toEqual({ made: 1, delivered: 1, pages: 1, reads: 1 });

  one.close();
  await write();
  expect(costs()).toEqual({ made: 2, delivered: 2, pages: 1, reads: 1 });

  other.close();
  await log.untilReads(0);
  await write();
  expect(costs()).toEqual({ made: 2, delivered: 2, pages: 1, reads: 0 });

  await using again = await watch(counted, T, { lingerMs: 0 });
  await write();
  expect(await take(again, 2)).toEqual(expect.arrayContaining(['a', 'b']));
});

test('any number of watches of a topic cost one live read, and get one object for each event', async () => {
  await using broker = memoryBroker();
  const log = new ScriptedLog(broker.log);
  const watches = await Promise.all(
    Array.from({ length: 100 }, () => watch({ ...broker, log }, T, { lingerMs: 0 })),
  );
  await broker.log.append(T, ['a', 'b']);
  announce(broker, T, 'c');
  const seen = await Promise.all(
    watches.map(async (each) => [await each.next(), await each.next(), await each.next()]),
  );
  expect(new Set(seen.flat()).size).toBe(3);
  expect(log.follows).toBe(1);
  for (const each of watches) each.close();
  expect(tailsOf(log).size).toBe(0);
});

test('a watch holds 1024 events by default', async () => {
  await using broker = memoryBroker();
  await using watching = await watch(broker, T, { only: 'announcements' });
  for (let count = 0; count < 1024; count += 1) announce(broker, T, String(count));
  expect(await take(watching, 1024)).toHaveLength(1024);
  for (let count = 0; count < 1025; count += 1) announce(broker, T, String(count));
  expect(watching.tryNext()).toEqual({ kind: 'lagged', missed: 1 });
  expect(await take(watching, 1)).toEqual(['1']);
});

describe('a consumer that throws', () => {
  test('ends its own watch alone: the writer and the other watches do not notice', async () => {
    await using broker = memoryBroker();
    const failing = await watch(broker, T, { lingerMs: 0 });
    await using other = await watch(broker, T, { lingerMs: 0 });
    const error = new Error('of the consumer');
    const consuming = (async () => {
      for await (const _ of failing) throw error;
    })();
    const ended = expect(consuming).rejects.toBe(error);
    expect((await broker.log.append(T, 'a')).ordinal).toBe(1);
    await ended;
    announce(broker, T, 'b');
    expect((await broker.log.append(T, 'c')).ordinal).toBe(2);
    expect(await take(other, 3)).toEqual(expect.arrayContaining(['a', 'b', 'c']));
    expect(failing.tryNext()).toEqual({ kind: 'closed' });
  });

  test('in a continuation is not called by the writer', async () => {
    await using broker = memoryBroker();
    await using watching = await watch(broker, T);
    const error = new Error('of the continuation');
    const fail = (): never => {
      throw error;
    };
    const entry = expect(watching.next().then(fail)).rejects.toBe(error);
    await broker.log.append(T, 'a');
    await entry;
    const announcement = expect(watching.next().then(fail)).rejects.toBe(error);
    announce(broker, T, 'b');
    await announcement;
    await broker.log.append(T, 'c');
    expect(await take(watching, 1)).toEqual(['c']);
  });
});

async function take(watching: Watch, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) texts.push(textOf((await watching.next()) as WatchItem));
  return texts;
}

function textOf(item: WatchItem): string {
  if (item.kind === 'lagged') return `lagged ${item.missed}`;
  return item.kind === 'entry' ? item.entry.value : item.value;
}
