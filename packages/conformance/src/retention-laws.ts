import assert from 'node:assert/strict';
import type { BrokerLog, Retention } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { commitSubject, freshTopic, type GetSubject } from './broker-harness.ts';
import { follow, startFollow } from './follower.ts';
import {
  appendEach,
  at,
  expectContiguous,
  numbered,
  readAll,
  tipOf,
  valuesOf,
  verdictOf,
} from './reading.ts';

const HOUR_MS = 3_600_000;
/** Appends after which a commit of some milliseconds ago is old, however coarse the clocks are. */
const MAX_TRIES = 2_000;

/** What an append with a retention of its own leaves of its topic. */
export function retentionLaws(of: GetSubject): void {
  test('an append leaves the newest entries that its retention asks for', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    for (const value of numbered(10)) await log.append(topic, value, { retention: newest(3) });
    for (const reader of [log, peerLog]) {
      const commits = await readAll(reader, topic, 'earliest');
      expect(valuesOf(commits).flat()).toEqual(['v-7', 'v-8', 'v-9']);
      const { first, last } = await reader.bounds(topic);
      expect([first.ordinal, last.ordinal]).toEqual([7, 10]);
    }
  });

  test('what one append asks for is not asked by the next, nor of another topic', async () => {
    const { log, peerLog } = of();
    const [topic, other] = [freshTopic(), freshTopic()];
    for (const name of [topic, other]) await appendEach(log, name, numbered(5));
    await peerLog.append(topic, 'only', { retention: newest(1) });
    await appendEach(log, topic, ['a', 'b']);
    await log.append(topic, 'c', { retention: {} });
    expect(valuesOf(await readAll(log, topic, 'earliest')).flat()).toEqual(['only', 'a', 'b', 'c']);
    expect(valuesOf(await readAll(log, other, 'earliest')).flat()).toEqual(numbered(5));
  });

  test('appends that are written together each leave what they ask for', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    await appendEach(log, topic, numbered(4, 'before'));
    const start = await tipOf(log, topic);
    const follower = await follow(peerLog, topic, start);
    const asked = [newest(3), undefined, newest(2), newest(5)];
    await Promise.all(
      asked.map((retention, index) =>
        log.append(topic, `v-${index}`, retention === undefined ? {} : { retention }),
      ),
    );
    const kept = ['v-1', 'v-2', 'v-3'];
    expect(valuesOf(await readAll(log, topic, 'earliest')).flat()).toEqual(kept);
    await log.append(topic, 'v-4');
    const all = await Promise.race([follower.ended, follower.received(5).then(() => 'all')]);
    expectContiguous(start, follower.commits);
    if (all !== 'all') expect(all).toBe('trimmed');
  });

  test('commits stay whole: no fewer entries than asked for, and the newest commit always', async () => {
    const { log } = of();
    const topic = freshTopic();
    const retention = newest(3);
    for (const prefix of numbered(8, 'c')) {
      await log.append(topic, numbered(2, prefix), { retention });
    }
    const kept = valuesOf(await readAll(log, topic, 'earliest'));
    expect(kept.flat().length).toBeGreaterThanOrEqual(3);
    expect(kept).toEqual(
      numbered(8, 'c')
        .map((prefix) => numbered(2, prefix))
        .slice(-kept.length),
    );
    expect(kept.length).toBeLessThan(8);
    await log.append(topic, numbered(5), { retention: { maxEntries: 1, maxAgeMs: 1 } });
    expect(valuesOf(await readAll(log, topic, 'earliest'))).toEqual([numbered(5)]);
  });

  test('whoever it overtakes is told "trimmed"; whoever holds the last commit that went has lost nothing', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const [start, ...positions] = [
      await tipOf(log, topic),
      ...(await appendEach(log, topic, numbered(4))),
    ];
    const live = await follow(peerLog, topic, at(positions, -1));
    const tip = await log.append(topic, 'v-4', { retention: newest(2) });
    for (const reader of [log, peerLog]) {
      for (const position of [start, ...positions.slice(0, 2)]) {
        expect(await verdictOf(reader, topic, position)).toBe('trimmed');
        expect(await startFollow(reader, topic, position).ended).toBe('trimmed');
      }
      const rest = await readAll(reader, topic, at(positions, 2));
      expect(valuesOf(rest).flat()).toEqual(['v-3', 'v-4']);
      expect((await reader.bounds(topic)).first).toEqual(at(positions, 2));
    }
    await live.received(1);
    expect(live.commits.map(({ position }) => position)).toEqual([tip]);
  });

  test('a repeat under an idempotency key removes nothing', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const first = await log.append(topic, 'a', { idempotencyKey: 'k' });
    await appendEach(log, topic, ['b', 'c']);
    for (const writer of [log, peerLog]) {
      const again = { idempotencyKey: 'k', retention: newest(1) };
      expect(await writer.append(topic, 'a', again)).toEqual(first);
      await expect(writer.append(topic, 'other', again)).rejects.toMatchObject({
        code: 'IDEMPOTENCY_CONFLICT',
      });
    }
    expect(valuesOf(await readAll(log, topic, 'earliest')).flat()).toEqual(['a', 'b', 'c']);
  });

  test('a refused append removes nothing', async () => {
    const { log } = of();
    const topic = freshTopic();
    await appendEach(log, topic, numbered(3));
    await expect(log.append(topic, [], { retention: newest(1) })).rejects.toMatchObject({
      code: 'VALUE_INVALID',
    });
    expect(await readAll(log, topic, 'earliest')).toHaveLength(3);
  });

  test('what is older than asked for goes, and nothing that is younger', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const old = await log.append(topic, 'old');
    for (const value of numbered(20)) {
      await log.append(topic, value, { retention: { maxAgeMs: HOUR_MS } });
    }
    expect(await readAll(log, topic, 'earliest')).toHaveLength(21);
    await appendUntil(log, topic, { maxAgeMs: 1 }, old.ordinal);
    const start = { ...old, id: '0', ordinal: 0 };
    expect(await verdictOf(peerLog, topic, start)).toBe('trimmed');
    const kept = await readAll(peerLog, topic, 'earliest');
    expect(kept.length).toBeGreaterThanOrEqual(1);
  });

  test('each part of a commit across topics leaves of its own topic what it asks for', async (context) => {
    const subject = await commitSubject(of());
    if (subject === undefined) return context.skip();
    const { log, peerLog } = subject;
    const topics = [freshTopic('a'), freshTopic('b'), freshTopic('c')];
    for (const topic of topics) await appendEach(log, topic, numbered(4));
    const asked = [newest(1), newest(3), undefined];
    const parts = topics.map((topic, index) => {
      const retention = asked[index];
      return { topic, value: 'new', ...(retention === undefined ? {} : { retention }) };
    });
    const once = { idempotencyKey: freshTopic('key') };
    const { positions } = await log.appendAll(parts, once);
    const left = async (): Promise<number[]> => {
      const pages = topics.map((topic) => readAll(peerLog, topic, 'earliest'));
      return (await Promise.all(pages)).map((commits) => commits.length);
    };
    expect(await left()).toEqual([1, 3, 5]);
    await appendEach(log, at(topics, 0), numbered(2));
    expect((await log.appendAll(parts, once)).positions).toEqual(positions);
    expect(await left()).toEqual([3, 3, 5]);
    await expect(
      log.appendAll([at(parts, 2), { ...at(parts, 0), retention: { maxEntries: 0 } }]),
    ).rejects.toMatchObject({ name: 'BrokerError', code: 'OPTION_INVALID' });
    expect(await left()).toEqual([3, 3, 5]);
  });
}

function newest(maxEntries: number): Retention {
  return { maxEntries };
}

/** Appends with a retention until a commit is gone. The store's clock is not ours: it takes as many as it takes. */
async function appendUntil(
  log: BrokerLog,
  topic: string,
  retention: Retention,
  ordinal: number,
): Promise<void> {
  for (let count = 0; count < MAX_TRIES; count += 1) {
    await log.append(topic, `later-${count}`, { retention });
    if ((await log.bounds(topic)).first.ordinal >= ordinal) return;
  }
  assert.fail(`commit ${ordinal} is still there after ${MAX_TRIES} appends`);
}
