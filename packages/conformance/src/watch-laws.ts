import {
  announce,
  type Broker,
  type Watch,
  type WatchItem,
  watch,
  watchThenScan,
} from '@brokerfeed/core';
import { expect, onTestFinished, type TestContext, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { appendEach, numbered, readAll, valuesOf } from './reading.ts';

/** What a watch on a broker gets, and what it is told that it did not get. */
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
    const writers = [log, peerLog].flatMap((writer, at) =>
      Array.from({ length: 10 }, async (_, lane) => {
        for (const value of numbered(50, `${at}.${lane}`)) await writer.append(topic, value);
      }),
    );
    const watches = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const watching = await open(harness.broker, topic, 4096);
        return { watching, scanned: valuesOf(await readAll(log, topic, 'earliest')).flat() };
      }),
    );
    await Promise.all(writers);
    const all = valuesOf(await readAll(log, topic, 'earliest')).flat();
    expect(all).toHaveLength(1000);
    const last = all.at(-1) as string;
    for (const { watching, scanned } of watches) {
      const seen = new Set(scanned);
      // The last write is either of the scan or the last that comes.
      while (!seen.has(last)) seen.add(textOf(await watching.next()));
      expect(seen.size).toBe(1000);
    }
  });

  test('a watch that nobody empties keeps the newest, and says how many it has dropped before them', async () => {
    const { harness, log } = of();
    const topic = freshTopic();
    const full = await open(harness.broker, topic, 3);
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

  test('whoever is woken by an entry finds it in the log', async () => {
    const { harness, log, peerLog } = of();
    const topic = freshTopic();
    const watching = await open(harness.broker, topic);
    for (let count = 1; count <= 10; count += 1) {
      const woken = watching.next().then(async () => (await log.bounds(topic)).last.ordinal);
      await peerLog.append(topic, `v-${count}`);
      expect(await woken).toBe(count);
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
    await log.append(topic, 'new');
    const seen = [...valuesOf(await readAll(log, topic, 'earliest')).flat()];
    expect(seen).toEqual(['new']);
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
    const watching = await open(harness.broker, topic, 2);
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

  announcementLaws(of);
}

function announcementLaws(of: GetSubject): void {
  const law = (name: string, run: (broker: Broker, peer: Broker) => Promise<void>): void =>
    test(name, async (context: TestContext) => {
      const { broker, peer: makePeer } = of().harness;
      if (broker.announcer === undefined) return context.skip();
      const peer = await makePeer();
      onTestFinished(() => peer.close());
      await run(broker, peer);
    });

  law(
    'an announcement reaches the watches of its topic on every instance, and is stored nowhere',
    async (broker, peer) => {
      const topic = freshTopic();
      const here = await open(broker, topic);
      const there = await open(peer, topic);
      const elsewhere = await open(peer, freshTopic());
      for (const value of TEXTS) announce(broker, topic, value);
      for (const watching of [here, there])
        expect(await take(watching, TEXTS.length)).toEqual(TEXTS);
      expect(elsewhere.tryNext()).toEqual({ kind: 'empty' });
      expect((await broker.log.bounds(topic)).last.ordinal).toBe(0);
    },
  );

  law(
    'what is announced once a watch stands comes to it, from either instance',
    async (broker, peer) => {
      for (let count = 0; count < 20; count += 1) {
        const topic = freshTopic();
        const watching = await open(broker, topic);
        announce(peer, topic, 'there');
        expect(await take(watching, 1)).toEqual(['there']);
        announce(broker, topic, 'here');
        expect(await take(watching, 1)).toEqual(['here']);
      }
    },
  );

  law('no watcher holds up an announcement, or makes it fail', async (broker, peer) => {
    const topic = freshTopic();
    const full = await open(peer, topic, 1);
    const control = await open(peer, topic);
    for (const value of numbered(50)) announce(broker, topic, value);
    expect(await take(control, 50)).toEqual(numbered(50));
    expect(full.tryNext()).toEqual({ kind: 'lagged', missed: 49 });
  });

  law('a closed broker announces nothing', async (broker, peer) => {
    const topic = freshTopic();
    const watching = await open(broker, topic);
    await peer.close();
    expect(() => announce(peer, topic, 'too late')).toThrow(
      expect.objectContaining({ name: 'BrokerError', code: 'CLOSED' }),
    );
    expect(watching.tryNext()).toEqual({ kind: 'empty' });
  });
}

const TEXTS = ['', 'a', '\0', 'line\nline', 'žluťoučký 🐎'];

async function open(broker: Broker, topic: string, capacity = 1024): Promise<Watch> {
  const watching = await watch(broker, topic, { capacity, lingerMs: 0 });
  onTestFinished(() => watching.close());
  return watching;
}

async function take(watching: Watch, count: number): Promise<string[]> {
  const texts: string[] = [];
  while (texts.length < count) texts.push(textOf(await watching.next()));
  return texts;
}

function textOf(item: WatchItem | { readonly kind: 'closed' }): string {
  if (item.kind === 'entry') return item.entry.value;
  if (item.kind === 'announcement') return item.value;
  return expect.fail(`the watch answered ${JSON.stringify(item)}`);
}
