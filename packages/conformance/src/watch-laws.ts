import { type Watch, watch, watchThenScan } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { commitSubject, freshTopic, type GetSubject } from './broker-harness.ts';
import { appendEach, numbered, readAll, readPage, valuesOf } from './reading.ts';
import { open, take, textOf } from './watching.ts';

/** What a watch on a broker gets of what is appended, and what it is told that it did not get. */
export function watchLaws(of: GetSubject): void {
  test('what two instances append comes to a watch in the order of the log', async () => {
    const { harness, log, peerLog } = of();
    const topic = freshTopic();
    await log.append(topic, 'before');
    const watching = await open(harness.broker, topic);
    await Promise.all(
      numbered(60).map((value, index) =>
        (index % 2 === 0 ? log : peerLog).append(topic, index % 5 === 0 ? [value, 'more'] : value),
      ),
    );
    const [, ...commits] = await readAll(log, topic, 'earliest');
    const appended = valuesOf(commits).flat();
    expect(await take(watching, appended.length)).toEqual(appended);
    expect(watching.tryNext()).toEqual({ kind: 'empty' });
  });

  test('each of a thousand racing writes can be read when the watch stands, or comes to it', async () => {
    const { harness, log, peerLog } = of();
    const topic = freshTopic();
    const rows = new Set<string>();
    const done: string[] = [];
    const writers = [log, peerLog].flatMap((writer, at) =>
      Array.from({ length: 10 }, async (_, lane) => {
        for (const value of numbered(50, `${at}.${lane}`)) {
          // First the row, then the news of it.
          rows.add(value);
          await writer.append(topic, value);
          done.push(value);
          if (done.length % 7 === 0) await new Promise(setImmediate);
        }
      }),
    );
    // One watch after the other, all through the race: each has to start the live read of the topic. What it scans is the
    // rows as they are at once, or the log.
    for (let watches = 0; watches < 3 || done.length < 1000; watches += 1) {
      const watching = await open(harness.broker, topic, { capacity: 4096 });
      const scanned =
        watches % 4 < 3 ? rows : valuesOf(await readAll(log, topic, 'earliest')).flat();
      const seen = new Set(scanned);
      const more = Math.min(1000, done.length + 40);
      while (done.length < more) await new Promise(setImmediate);
      const before = [...done];
      const end = `end ${watches}`;
      await peerLog.append(topic, end);
      while (!seen.has(end)) seen.add(textOf(await watching.next()));
      expect(before.filter((value) => !seen.has(value))).toEqual([]);
      watching.close();
    }
    await Promise.all(writers);
  });

  test('a watch that nobody empties keeps the newest, and says how many it has dropped before them', async () => {
    const { harness, log } = of();
    const topic = freshTopic();
    const full = await open(harness.broker, topic, { capacity: 3 });
    const control = await open(harness.broker, topic);
    await appendEach(log, topic, numbered(20));
    await take(control, 20);
    const items = [full.tryNext(), full.tryNext(), full.tryNext(), full.tryNext(), full.tryNext()];
    expect(items.map((item) => (item.kind === 'entry' ? textOf(item) : item))).toEqual([
      { kind: 'lagged', missed: 17 },
      'v-17',
      'v-18',
      'v-19',
      { kind: 'empty' },
    ]);
  });

  test('whoever is woken by an entry finds it in the log, and may append there and then', async () => {
    const { harness, log, peerLog } = of();
    const topic = freshTopic();
    const watching = await open(harness.broker, topic);
    for (let count = 1; count <= 10; count += 1) {
      const woken = watching.next().then(async (item) => {
        const found = valuesOf(await readAll(log, topic, 'earliest')).flat();
        await log.append(topic, `after ${textOf(item)}`);
        return found.includes(textOf(item));
      });
      await peerLog.append(topic, `v-${count}`);
      expect(await woken).toBe(true);
      expect(await take(watching, 1)).toEqual([`after v-${count}`]);
    }
  });

  test('all watches of an instance are given the same object for an entry, with its headers and its address', async () => {
    const { harness, log } = of();
    const topic = freshTopic();
    const watches = [await open(harness.broker, topic), await open(harness.broker, topic)] as const;
    await log.append(topic, ['a', 'b'], { headers: { name: 'x' } });
    for (const [index, value] of ['a', 'b'].entries()) {
      const [one, other] = [await watches[0].next(), await watches[1].next()];
      const entry = { topic, value, generation: 1, index, headers: { name: 'x' } };
      expect(one).toMatchObject({ kind: 'entry', entry });
      expect(other).toBe(one);
    }
  });

  test('an append that writes nothing is no event: a repeat under its key, or one that is refused', async () => {
    const { harness, log, peerLog } = of();
    const topic = freshTopic();
    const watching = await open(harness.broker, topic);
    const once = { idempotencyKey: 'k' };
    await log.append(topic, ['a', 'b'], once);
    await peerLog.append(topic, ['a', 'b'], once);
    await expect(log.append(topic, 'c', once)).rejects.toMatchObject({
      code: 'IDEMPOTENCY_CONFLICT',
    });
    await expect(log.append(topic, [])).rejects.toMatchObject({ code: 'VALUE_INVALID' });
    await log.append(topic, 'last');
    expect(await take(watching, 3)).toEqual(['a', 'b', 'last']);
  });

  test('a commit across topics is to each watch an entry of its own topic, like any other', async (context) => {
    const subject = await commitSubject(of());
    if (subject === undefined) return context.skip();
    const { broker, peerLog } = subject;
    const topics = [freshTopic('a'), freshTopic('b'), freshTopic('c')];
    const watches = await Promise.all(topics.map((topic) => open(broker, topic)));
    await peerLog.append(topics[2] as string, 'before');
    await peerLog.appendAll(topics.map((topic) => ({ topic, value: `to ${topic}` })));
    expect(await take(watches[2] as Watch, 1)).toEqual(['before']);
    for (const [index, topic] of topics.entries()) {
      const item = await (watches[index] as Watch).next();
      if (item.kind !== 'entry') return expect.fail(item.kind);
      const { value, generation, index: place, headers } = item.entry;
      expect([value, generation, place]).toEqual([`to ${topic}`, index === 2 ? 2 : 1, 0]);
      expect({ ...headers }).toEqual({});
      expect(watches[index]?.tryNext()).toEqual({ kind: 'empty' });
    }
  });

  test('a topic that is deleted and made anew is a lag of unknown size, and the watch goes on', async () => {
    const { harness, log } = of();
    const topic = freshTopic();
    await log.append(topic, 'old');
    const watching = await open(harness.broker, topic);
    await log.append(topic, 'last of the old');
    expect(await take(watching, 1)).toEqual(['last of the old']);
    await harness.drop(topic);
    expect(await watching.next()).toEqual({ kind: 'lagged', missed: undefined });
    // It may have been written before the loss was noticed, or after: it is in the log, or it comes.
    const { commits, from } = await readPage(log, topic, 'earliest');
    expect([commits.length, from.ordinal]).toEqual([0, 0]);
    await log.append(topic, 'new');
    expect(await take(watching, 1)).toEqual(['new']);
  });

  test('a close of the broker ends its watches after what they hold, and no others', async () => {
    const { harness, log } = of();
    const topic = freshTopic();
    const other = await open(harness.broker, topic);
    const peer = await harness.peer();
    const watching = await open(peer, topic);
    const control = await open(peer, topic);
    const ofEntries = await watch(peer, topic, { only: 'entries', lingerMs: 0 });
    await log.append(topic, 'held');
    await take(control, 1);
    await take(ofEntries, 1);
    const nexts = [control.next(), ofEntries.next()];
    await peer.close();
    for (const next of nexts) expect(await next).toEqual({ kind: 'closed' });
    expect(await take(watching, 1)).toEqual(['held']);
    expect(await watching.next()).toEqual({ kind: 'closed' });
    await log.append(topic, 'after');
    expect(await take(other, 2)).toEqual(['held', 'after']);
  });

  test('a copy that is kept by watching, then scanning converges, though the watch loses most', async () => {
    const { harness, log, peerLog } = of();
    const topic = freshTopic();
    const rows = new Map<string, number>();
    let copy = new Map<string, number>();
    const watching = await open(harness.broker, topic, { capacity: 2 });
    const keeping = watchThenScan({
      watch: () => watching,
      scan: async () => {
        const fresh = new Map<string, number>();
        for (const key of [...rows.keys()]) {
          await null;
          fresh.set(key, rows.get(key) as number);
        }
        copy = fresh;
      },
      key: (event) => (event.kind === 'entry' ? event.entry.value : undefined),
      apply: async (key) => void copy.set(key, rows.get(key) as number),
    });
    for (let version = 1; version <= 100; version += 1) {
      const key = `k-${version % 7}`;
      rows.set(key, version);
      const appending = (version % 2 === 0 ? log : peerLog).append(topic, key);
      if (version % 10 === 0) await appending;
    }
    const control = await open(harness.broker, topic);
    rows.set('the last', 0);
    await log.append(topic, 'the last');
    while (textOf(await control.next()) !== 'the last');
    watching.close();
    await keeping;
    expect(copy).toEqual(rows);
  });
}
