import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { TestMeter } from '../../../test/support/observed.ts';
import { type LogLine, logLines } from '../test/support/log-lines.ts';
import { ManualClock } from '../test/support/manual-clock.ts';
import type { Broker, Entry } from './broker.ts';
import { announce, Feed, type SealKey, sealed, watch } from './index.ts';
import { memoryBroker, memoryStore } from './memory/index.ts';

const T = 'orders';
const A = { id: 'a', key: randomBytes(32) };
const B = { id: 'b', key: randomBytes(32) };
const OUTAGE = new Error('the key service is away');
/** The waits of a live read that breaks. */
const TRIES_MS = [250, 1_000, 4_000, 10_000, 16_000];

describe('keys that a function answers', () => {
  test('change without a restart, for appends, reads and announcements', async () => {
    const { plain, broker, give } = rig();
    await using heard = await watch(broker, T, { only: 'announcements' });
    await broker.log.append(T, 'by a');
    give([B, A]);
    await broker.log.append(T, 'by b');
    announce(broker, T, 'said by b');
    const stored = await entriesOf(plain);
    expect(stored.map(({ value }) => value.split('.', 2).join('.'))).toEqual(['bfs1.a', 'bfs1.b']);
    expect((await entriesOf(broker)).map(({ value }) => value)).toEqual(['by a', 'by b']);
    expect(heard.tryNext()).toMatchObject({ value: 'said by b' });
    give([B]);
    expect((await entriesOf(broker)).map(({ unreadable }) => unreadable)).toEqual([
      expect.objectContaining({ reason: 'kid' }),
      undefined,
    ]);
  });

  test('are asked for with each append and each page, not with each entry, and looked at where they are others', async () => {
    const { broker, give, calls } = rig();
    let looks = 0;
    give([
      {
        id: 'a',
        get key() {
          looks += 1;
          return A.key;
        },
      },
    ]);
    await broker.log.append(T, ['a', 'b', 'c']);
    expect(calls()).toBe(1);
    expect((await entriesOf(broker)).map(({ value }) => value)).toEqual(['a', 'b', 'c']);
    expect([calls(), looks]).toEqual([2, 1]);
  });

  test('know a repeated append that was sealed with an earlier one', async () => {
    const { broker, give } = rig();
    const once = { idempotencyKey: 'k' };
    const first = await broker.log.append(T, 'a', once);
    give([B, A]);
    expect(await broker.log.append(T, 'a', once)).toEqual(first);
  });

  test.each([
    ['is no list', 'keys'],
    ['has a key that is none', [{ id: 'a', key: 'short' }]],
  ])('are not to be had where the answer %s', async (_, answer) => {
    const { broker, give } = rig();
    give(answer as never);
    await expect(broker.log.append(T, 'a')).rejects.toMatchObject({
      code: 'UNAVAILABLE',
      cause: expect.objectContaining({ code: 'OPTION_INVALID' }),
    });
  });
});

describe('while keys cannot be had', () => {
  test('appends and pages are unavailable, nothing is written, and the log says so at error once in ten seconds', async () => {
    const { plain, broker, give, meter, lines, clock } = rig();
    await broker.log.append(T, 'a');
    give(OUTAGE);
    const unavailable = { name: 'BrokerError', code: 'UNAVAILABLE', cause: OUTAGE };
    await expect(broker.log.append(T, 'b')).rejects.toMatchObject(unavailable);
    expect(() => announce(broker, T, 'nobody hears')).not.toThrow();
    for (let count = 0; count < 2; count += 1) {
      await expect(broker.log.page(T, 'earliest', 10)).rejects.toMatchObject(unavailable);
    }
    clock.advance(10_000);
    await expect(broker.log.page(T, 'earliest', 10)).rejects.toMatchObject(unavailable);
    expect(lines.map(({ level, fields }) => [level, fields.reason, fields.count])).toEqual([
      ['error', 'keys', 1],
      ['debug', 'keys', 2],
      ['error', 'keys', 3],
    ]);
    expect(lines[0]?.fields).toMatchObject({ topic: T, err: { cause: OUTAGE } });
    expect(meter.of('brokerfeed.sealed.refused keys')).toBe(3);
    expect(await entriesOf(plain)).toHaveLength(1);
    // Where a position is, is no secret.
    expect(await broker.log.page(T, 'latest', 0)).toMatchObject({ verdict: 'ok' });
    give([A]);
    expect((await entriesOf(broker)).map(({ value }) => value)).toEqual(['a']);
  });

  test('a subscriber waits as in an outage, and then gets every entry', async () => {
    const { plain, broker, give, clock } = rig();
    const writer = sealed(plain, { keys: [A] });
    const feed = new Feed(broker, { decode: 'text', clock, lingerMs: 0 });
    const left = new AbortController();
    const reader = await feed.open({ topic: T, lastEventId: '', args: {}, signal: left.signal });
    await writer.log.append(T, 'before');
    expect(await reader.next()).toMatchObject({ value: 'before' });
    give(OUTAGE);
    await writer.log.append(T, 'meanwhile');
    const next = reader.next();
    for (const ms of TRIES_MS.slice(0, 3)) {
      await clock.untilWait(ms);
      clock.advance(ms);
    }
    await clock.untilWait(TRIES_MS[3] as number);
    give([A]);
    clock.advance(TRIES_MS[3] as number);
    await writer.log.append(T, 'after');
    expect(await next).toMatchObject({ value: 'meanwhile' });
    expect(await reader.next()).toMatchObject({ value: 'after' });
    left.abort();
  });

  test('for longer than that, a subscriber is sent away to come back with its token', async () => {
    const { plain, broker, give, clock } = rig();
    const writer = sealed(plain, { keys: [A] });
    const feed = new Feed(broker, { decode: 'text', clock, lingerMs: 0 });
    const left = new AbortController();
    const reader = await feed.open({ topic: T, lastEventId: '', args: {}, signal: left.signal });
    await writer.log.append(T, 'before');
    const before = await reader.next();
    give(OUTAGE);
    await writer.log.append(T, 'meanwhile');
    const next = reader.next();
    next.catch(() => {});
    for (const ms of TRIES_MS) {
      await clock.untilWait(ms);
      clock.advance(ms);
    }
    await expect(next).rejects.toMatchObject({ status: 503, reason: 'unavailable' });
    give([A]);
    const again = await feed.open({
      topic: T,
      lastEventId: before?.token,
      args: {},
      signal: left.signal,
    });
    expect(await again.next()).toMatchObject({ value: 'meanwhile' });
    left.abort();
  });

  test('an announcement is lost, and whoever watches is told that some are', async () => {
    const { plain, broker, give, meter } = rig();
    const writer = sealed(plain, { keys: [A] });
    await using one = await watch(broker, T, { only: 'announcements' });
    await using other = await watch(broker, T, { only: 'announcements' });
    give(OUTAGE);
    announce(writer, T, 'lost');
    give([A]);
    announce(writer, T, 'heard');
    for (const watching of [one, other]) {
      expect(watching.tryNext()).toEqual({ kind: 'lagged', missed: undefined });
      expect(watching.tryNext()).toMatchObject({ value: 'heard' });
    }
    expect(meter.of('brokerfeed.sealed.refused keys')).toBe(1);
    give(OUTAGE);
    expect(() => announce(broker, T, 'cannot be sealed')).toThrow(
      expect.objectContaining({ code: 'UNAVAILABLE' }),
    );
  });

  test('an instance that does not seal yet appends all the same', async () => {
    const { plain, give, keys } = rig();
    const reading = sealed(plain, { keys, seal: false, acceptPlaintext: true });
    give(OUTAGE);
    expect((await reading.log.append(T, 'plain')).ordinal).toBe(1);
  });
});

test('a sealed log is read again whenever, and what it holds is text of the url alphabet', async () => {
  const { plain, broker, clock } = rig();
  await broker.log.append(T, ['a', 'ž \0'], { headers: { name: 'x' } });
  for (const { value, headers } of await entriesOf(plain)) {
    for (const text of [value, ...Object.values(headers)]) {
      expect(text).toMatch(/^bfs1\.a\.[A-Za-z0-9_-]+$/);
    }
  }
  for (let year = 0; year < 3; year += 1) {
    clock.advance(365 * 86_400_000);
    const entries = await entriesOf(broker);
    expect(entries.map(({ value, headers }) => [value, headers.name])).toEqual([
      ['a', 'x'],
      ['ž \0', 'x'],
    ]);
  }
});

interface Rig {
  /** The broker below. */
  readonly plain: Broker;
  readonly broker: Broker;
  readonly keys: () => readonly SealKey[];
  /** What the function answers from now on, or throws. */
  readonly give: (answer: readonly SealKey[] | Error) => void;
  /** How often it was asked. */
  readonly calls: () => number;
  readonly meter: TestMeter;
  readonly clock: ManualClock;
  readonly lines: readonly LogLine[];
}

function rig(): Rig {
  const { logger, lines } = logLines('brokerfeed.sealed.refused');
  const meter = new TestMeter();
  const clock = new ManualClock();
  const plain = memoryBroker({ store: memoryStore(), meter, logger });
  let answer: readonly SealKey[] | Error = [A];
  let calls = 0;
  const keys = (): readonly SealKey[] => {
    calls += 1;
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return {
    plain,
    broker: sealed(plain, { keys, clock }),
    keys,
    give: (next) => {
      answer = next;
    },
    calls: () => calls,
    meter,
    clock,
    lines,
  };
}

async function entriesOf(broker: Broker): Promise<readonly Entry[]> {
  const page = await broker.log.page(T, 'earliest', 100);
  if (page.verdict !== 'ok') return expect.fail(page.verdict);
  return page.commits.flatMap((commit) => commit.entries);
}
