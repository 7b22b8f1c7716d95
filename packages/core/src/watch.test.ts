import { describe, expect, test } from 'vitest';
import { ManualClock } from '../test/support/manual-clock.ts';
import { OUTAGE, ScriptedLog } from '../test/support/scripted-log.ts';
import type { Broker } from './broker.ts';
import { deferred } from './deferred.ts';
import { announce, type WatchItem, watch } from './index.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';
import { tailsOf } from './tails.ts';

const T = 'orders';

describe('a watch', () => {
  test('gets what is appended after it stands, in order, and nothing from before', async () => {
    await using broker = memoryBroker();
    await broker.log.append(T, 'before');
    await using watching = await watch(broker, T);
    await broker.log.append(T, ['a', 'b'], { headers: { from: 'test' } });
    await broker.log.append(T, 'c');
    expect(await take(watching, 3)).toEqual(['a', 'b', 'c']);
    await broker.log.append(T, 'd');
    const { entry } = (await watching.next()) as WatchItem & { kind: 'entry' };
    expect(entry).toMatchObject({ value: 'd', topic: T, generation: 4, index: 0, headers: {} });
  });

  test('stands once the live read has a place, and not before: each write can be read then, or comes', async () => {
    await using broker = memoryBroker();
    const log = new ScriptedLog(broker.log);
    const asked = deferred<void>();
    const answered = deferred<void>();
    log.beforePage = () => asked.promise;
    log.afterPage = () => answered.promise;
    let scanned: Promise<number> | undefined;
    const opening = watch({ ...broker, log }, T).then((watching) => {
      scanned = broker.log.bounds(T).then(({ last }) => last.ordinal);
      return watching;
    });
    await broker.log.append(T, 'before the place');
    asked.resolve();
    await new Promise(setImmediate);
    await broker.log.append(T, 'after the place');
    expect(scanned).toBeUndefined();
    answered.resolve();
    await using watching = await opening;
    expect(await scanned).toBe(2);
    expect(await take(watching, 1)).toEqual(['after the place']);
  });

  test('that joins a live read under way gets nothing from before either', async () => {
    await using broker = memoryBroker();
    await using first = await watch(broker, T);
    await broker.log.append(T, 'before');
    expect(await take(first, 1)).toEqual(['before']);
    await using second = await watch(broker, T);
    await broker.log.append(T, 'after');
    expect(await take(second, 1)).toEqual(['after']);
  });

  test('gets what is announced, on every instance of the store', async () => {
    const store = memoryStore();
    await using broker = memoryBroker({ store });
    await using peer = memoryBroker({ store });
    await using watching = await watch(broker, T);
    await using other = await watch(broker, 'another topic');
    announce(peer, T, 'here');
    announce(broker, T, () => 'made only when heard');
    expect(await take(watching, 2)).toEqual(['announced here', 'announced made only when heard']);
    expect(other.tryNext()).toEqual({ kind: 'empty' });
    expect((await broker.log.bounds(T)).last.ordinal).toBe(0);
  });

  test('can be of entries only, or of announcements only, which reads no log', async () => {
    await using broker = memoryBroker();
    await using heard = await watch(broker, T, { only: 'announcements' });
    expect(tailsOf(broker.log).size).toBe(0);
    await using read = await watch(broker, T, { only: 'entries' });
    announce(broker, T, 'said');
    await broker.log.append(T, 'written');
    expect(await take(read, 1)).toEqual(['written']);
    expect(await take(heard, 1)).toEqual(['announced said']);
    expect([heard.tryNext(), read.tryNext()]).toEqual([{ kind: 'empty' }, { kind: 'empty' }]);
  });

  test('shares each event with every other watch', async () => {
    await using broker = memoryBroker();
    await using one = await watch(broker, T);
    await using other = await watch(broker, T);
    await broker.log.append(T, 'a');
    announce(broker, T, 'b');
    for (let count = 0; count < 2; count += 1) expect(await one.next()).toBe(await other.next());
  });
});

describe('a watch that falls behind', () => {
  test('drops the oldest, and is told how many at their place', async () => {
    await using broker = memoryBroker();
    await using watching = await watch(broker, T, { capacity: 3, only: 'announcements' });
    say(broker, 0, 5);
    expect(drain(watching)).toEqual(['lagged 2', 'v2', 'v3', 'v4']);
    say(broker, 5, 7);
    expect(drain(watching)).toEqual(['v5', 'v6']);
  });

  test('is told of the events that survived before it is told of a loss behind them', async () => {
    await using broker = memoryBroker();
    await using watching = await watch(broker, T, { capacity: 4, only: 'announcements' });
    say(broker, 0, 4);
    expect(text(watching.tryNext())).toBe('v0');
    say(broker, 4, 6);
    expect(drain(watching)).toEqual(['lagged 1', 'v2', 'v3', 'v4', 'v5']);
  });

  test.each([
    ['is counted', 2, 'lagged 4'],
    ['is counted too where more came than the live read holds', 600, 'lagged 1798'],
  ])('and gets more in one batch than it keeps: the loss %s', async (_, size, lagged) => {
    await using broker = memoryBroker();
    const log = new ScriptedLog(broker.log);
    // Held back until all is written, so that it comes in one batch.
    const written = deferred<void>();
    log.beforeFollow = () => written.promise;
    await using watching = await watch({ ...broker, log }, T, { capacity: 2 });
    await using control = await watch({ ...broker, log }, T, { capacity: 1 });
    const values = Array.from({ length: size }, (_, index) => String(index));
    for (let commits = 0; commits < 3; commits += 1) await broker.log.append(T, values);
    written.resolve();
    await control.next();
    expect(drain(watching)).toEqual([lagged, values.at(-2), values.at(-1)]);
  });

  test('is told of a loss while it waits', async () => {
    const store = memoryStore();
    await using broker = memoryBroker({ store });
    await using watching = await watch(broker, T);
    const next = watching.next();
    store.drop(T);
    expect(text(await next)).toBe('lagged unknown');
    await broker.log.append(T, 'of the new topic');
    expect(text(await watching.next())).toBe('of the new topic');
  });

  test('holds up no writer and no other watch', async () => {
    await using broker = memoryBroker();
    await using slow = await watch(broker, T, { capacity: 2 });
    await using quick = await watch(broker, T);
    for (let count = 0; count < 100; count += 1) await broker.log.append(T, `v${count}`);
    expect(await take(quick, 100)).toHaveLength(100);
    expect(drain(slow)).toEqual(['lagged 98', 'v98', 'v99']);
  });
});

describe('waiting', () => {
  test('a deadline that passes with nothing there is a timeout, and nothing is lost by it', async () => {
    const clock = new ManualClock();
    await using broker = memoryBroker();
    await using watching = await watch(broker, T, { clock });
    const next = watching.next({ timeoutMs: 50 });
    await clock.untilWait(50);
    clock.advance(50);
    expect(await next).toEqual({ kind: 'timeout' });
    announce(broker, T, 'later');
    expect(await take(watching, 1)).toEqual(['announced later']);
  });

  test('an event that is held outranks a deadline that has passed', async () => {
    await using broker = memoryBroker();
    await using watching = await watch(broker, T);
    announce(broker, T, 'held');
    expect(text(await watching.next({ timeoutMs: 0 }))).toBe('announced held');
    expect(await watching.next({ timeoutMs: 0 })).toEqual({ kind: 'timeout' });
  });

  test('an event in time takes the deadline back', async () => {
    const clock = new ManualClock();
    await using broker = memoryBroker();
    await using watching = await watch(broker, T, { clock, only: 'announcements' });
    const next = watching.next({ timeoutMs: 50 });
    await clock.untilWait(50);
    announce(broker, T, 'in time');
    expect(text(await next)).toBe('announced in time');
    expect(clock.waits).toEqual([]);
  });

  test('calls that overlap are answered in order', async () => {
    await using broker = memoryBroker();
    await using watching = await watch(broker, T);
    const both = [watching.next(), watching.next()];
    announce(broker, T, 'first');
    announce(broker, T, 'second');
    expect((await Promise.all(both)).map(text)).toEqual(['announced first', 'announced second']);
  });

  test('who is woken reads what was written, and may write again', async () => {
    await using broker = memoryBroker();
    await using watching = await watch(broker, T);
    const woken = watching.next().then(async (item) => {
      const { entry } = item as WatchItem & { kind: 'entry' };
      const { last } = await broker.log.bounds(T);
      await broker.log.append(T, 'by the woken');
      return [entry.generation, last.ordinal];
    });
    await broker.log.append(T, 'a');
    expect(await woken).toEqual([1, 1]);
    expect(await take(watching, 1)).toEqual(['by the woken']);
  });

  test('nobody is woken inside the announcement', async () => {
    await using broker = memoryBroker();
    await using watching = await watch(broker, T);
    let woken = false;
    const next = watching.next().then(() => {
      woken = true;
    });
    announce(broker, T, 'a');
    expect(woken).toBe(false);
    await next;
  });
});

describe('the end of a watch', () => {
  test('comes after what it holds', async () => {
    await using broker = memoryBroker();
    const watching = await watch(broker, T);
    announce(broker, T, 'held');
    watching.close();
    watching.close();
    announce(broker, T, 'too late');
    expect(drain(watching)).toEqual(['announced held', 'closed']);
    expect(await watching.next()).toEqual({ kind: 'closed' });
  });

  test.each([undefined, 'entries', 'announcements'] as const)(
    'comes with that of its broker (only: %s), and settles who waits',
    async (only) => {
      const store = memoryStore();
      const broker = memoryBroker({ store });
      await using peer = memoryBroker({ store });
      const watching = await watch(broker, T, only && { only });
      const next = watching.next();
      await broker.close();
      expect(await next).toEqual({ kind: 'closed' });
      announce(peer, T, 'nobody hears');
      expect(watching.tryNext()).toEqual({ kind: 'closed' });
    },
  );

  test('comes after what was written before the close, and nothing can be written after it', async () => {
    const broker = memoryBroker();
    const watching = await watch(broker, T);
    const appended = broker.log.append(T, ['a', 'b']);
    const closed = broker.close();
    expect(() => announce(broker, T, 'too late')).toThrow(code('CLOSED') as Error);
    await expect(broker.log.append(T, 'too late')).rejects.toEqual(code('CLOSED'));
    await closed;
    expect((await appended).ordinal).toBe(1);
    expect(drain(watching)).toEqual(['a', 'b', 'closed']);
  });

  test('comes with its signal, also while it is opened', async () => {
    await using broker = memoryBroker();
    const abort = new AbortController();
    const watching = await watch(broker, T, { signal: abort.signal });
    const next = watching.next();
    abort.abort();
    expect(await next).toEqual({ kind: 'closed' });
    await expect(watch(broker, T, { signal: abort.signal })).rejects.toBe(abort.signal.reason);

    const log = new ScriptedLog(broker.log);
    const stuck = new AbortController();
    log.beforePage = () => new Promise(() => {});
    const opening = watch({ ...broker, log }, T, { signal: stuck.signal });
    stuck.abort();
    await expect(opening).rejects.toBe(stuck.signal.reason);
  });

  test('says why, where the log cannot be read any more', async () => {
    const clock = new ManualClock();
    await using broker = memoryBroker();
    const log = new ScriptedLog(broker.log);
    const watching = await watch({ ...broker, log }, T, { clock });
    await log.untilReads(1);
    log.beforeFollow = () => {
      throw OUTAGE;
    };
    log.breakReads();
    for (const ms of [250, 1_000, 4_000, 10_000, 16_000]) {
      await clock.untilWait(ms);
      clock.advance(ms);
    }
    expect(await watching.next()).toEqual({ kind: 'closed', error: OUTAGE });
    await expect(watching[Symbol.asyncIterator]().next()).rejects.toBe(OUTAGE);
  });

  test('stops the live read with the last of them', async () => {
    await using broker = memoryBroker();
    const one = await watch(broker, T, { lingerMs: 0 });
    const other = await watch(broker, T, { lingerMs: 0 });
    one.close();
    expect(tailsOf(broker.log).size).toBe(1);
    other.close();
    expect(tailsOf(broker.log).size).toBe(0);
  });

  test('comes by leaving the loop, and by `return()` while it waits', async () => {
    await using broker = memoryBroker();
    const left = await watch(broker, T, { lingerMs: 0 });
    announce(broker, T, 'a');
    for await (const item of left) {
      expect(text(item)).toBe('announced a');
      break;
    }
    expect(left.tryNext()).toEqual({ kind: 'closed' });
    const waiting = (await watch(broker, T, { lingerMs: 0 }))[Symbol.asyncIterator]();
    const next = waiting.next();
    await waiting.return?.();
    expect(await next).toEqual({ done: true, value: undefined });
    expect(tailsOf(broker.log).size).toBe(0);
  });
});

test.each([
  ['capacity', { capacity: 0 }],
  ['capacity', { capacity: 1.5 }],
  ['only', { only: 'all' }],
  ['lingerMs', { lingerMs: -1 }],
  ['options', null],
])('%s is refused by name in %o', async (name, options) => {
  await using broker = memoryBroker();
  await expect(watch(broker, T, options as object)).rejects.toMatchObject({
    code: 'OPTION_INVALID',
    message: expect.stringMatching(new RegExp(`^${name} is `)),
  });
});

test('a log that cannot be read is an error of the opening, as it is', async () => {
  const clock = new ManualClock();
  await using broker = memoryBroker();
  const log = new ScriptedLog(broker.log);
  log.beforePage = () => {
    throw OUTAGE;
  };
  const opening = watch({ ...broker, log }, T, { clock });
  opening.catch(() => {});
  for (const ms of [250, 1_000, 4_000, 10_000, 16_000]) {
    await clock.untilWait(ms);
    clock.advance(ms);
  }
  await expect(opening).rejects.toBe(OUTAGE);
  announce(broker, T, () => expect.fail('somebody still listens'));
});

test('a topic that is none, and a closed broker, are refused', async () => {
  const broker = memoryBroker();
  await expect(watch(broker, '')).rejects.toEqual(code('TOPIC_INVALID'));
  await broker.close();
  await expect(watch(broker, T)).rejects.toEqual(code('CLOSED'));
  await expect(watch(broker, T, { only: 'announcements' })).rejects.toEqual(code('CLOSED'));
});

function code(name: string): unknown {
  return expect.objectContaining({ name: 'BrokerError', code: name });
}

type Watching = Awaited<ReturnType<typeof watch>>;
type Next = Awaited<ReturnType<Watching['next']>> | ReturnType<Watching['tryNext']>;

function say(broker: Broker, from: number, to: number): void {
  for (let count = from; count < to; count += 1) announce(broker, T, `v${count}`);
}

async function take(watching: Watching, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) texts.push(text(await watching.next()));
  return texts;
}

/** What is there now, up to a close. */
function drain(watching: Watching): string[] {
  const texts: string[] = [];
  for (;;) {
    const next = watching.tryNext();
    if (next.kind === 'empty') return texts;
    texts.push(text(next));
    if (next.kind === 'closed') return texts;
  }
}

function text(next: Next): string {
  switch (next.kind) {
    case 'entry':
      return next.entry.value;
    case 'announcement':
      return `${/^v\d/.test(next.value) ? '' : 'announced '}${next.value}`;
    case 'lagged':
      return `lagged ${next.missed ?? 'unknown'}`;
    default:
      return next.kind;
  }
}
