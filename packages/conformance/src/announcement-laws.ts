import { announce, type Broker } from '@brokerfeed/core';
import { expect, onTestFinished, type TestContext, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { numbered } from './reading.ts';
import { open, take, textOf } from './watching.ts';

const TEXTS = ['', 'a', '\0', 'line\nline', 'žluťoučký 🐎'];

/** What is announced on a broker, and who hears it. Skipped for one that carries no announcements. */
export function announcementLaws(of: GetSubject): void {
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

  law(
    'each of a thousand racing announcements was preceded by its write when the watch stands, or comes to it',
    async (broker, peer) => {
      const topic = freshTopic();
      const rows = new Set<string>();
      let written = 0;
      const writing = Promise.all(
        Array.from({ length: 25 }, async (_, lane) => {
          for (const value of numbered(40, String(lane))) {
            // First the row, then the news of it.
            rows.add(value);
            announce(lane % 2 === 0 ? broker : peer, topic, value);
            written += 1;
            await Promise.all([broker.log.bounds(topic), new Promise(setImmediate)]);
          }
        }),
      );
      // One watch after the other, all through the race: on each instance there is none before it, and none after it.
      const race = async (at: Broker, name: string): Promise<void> => {
        for (let count = 0; count < 3 || written < 1000; count += 1) {
          const options = { capacity: 4096, only: 'announcements' } as const;
          const watching = await open(at, topic, options);
          const seen = new Set(rows);
          await new Promise(setImmediate);
          const before = [...rows];
          const ends = [`${name} ${count} here`, `${name} ${count} there`] as const;
          announce(broker, topic, ends[0]);
          announce(peer, topic, ends[1]);
          // An instance's announcements come in their order: after both ends, all that was before has come.
          while (!ends.every((end) => seen.has(end))) seen.add(textOf(await watching.next()));
          expect(before.filter((value) => !seen.has(value))).toEqual([]);
          watching.close();
        }
      };
      await Promise.all([race(broker, 'one'), race(peer, 'other'), writing]);
    },
  );

  law(
    'all watches of an instance are given the same object for an announcement',
    async (broker) => {
      const topic = freshTopic();
      const watches = [await open(broker, topic), await open(broker, topic)] as const;
      announce(broker, topic, 'a');
      const [one, other] = [await watches[0].next(), await watches[1].next()];
      expect(textOf(one)).toBe('a');
      expect(other).toBe(one);
    },
  );

  law('whoever is woken by an announcement may announce there and then', async (broker) => {
    const topic = freshTopic();
    const watching = await open(broker, topic);
    const woken = watching.next().then((item) => announce(broker, topic, `after ${textOf(item)}`));
    announce(broker, topic, 'a');
    await woken;
    expect(await take(watching, 1)).toEqual(['after a']);
  });

  law('no watcher holds up an announcement, or makes it fail', async (broker, peer) => {
    const topic = freshTopic();
    const full = await open(peer, topic, { capacity: 1 });
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
