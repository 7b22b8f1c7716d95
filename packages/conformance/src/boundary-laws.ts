import { type Broker, Feed } from '@brokerfeed/core';
import { expect, onTestFinished, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { at, numbered, readAll, readPage, tipOf, valuesOf } from './reading.ts';

/** Where a commit begins and ends, for those who are cut off inside it, and those who read beside its writer. */
export function boundaryLaws(of: GetSubject): void {
  test('a client that is cut off after two of the four entries of a commit is given all four again', async () => {
    const { harness } = of();
    const topic = freshTopic();
    const peer = await harness.peer();
    onTestFinished(() => peer.close());
    const first = await subscribe(harness.broker, topic);
    await harness.broker.log.append(topic, ['0']);
    await peer.log.append(topic, numbers(1, 4));
    await harness.broker.log.append(topic, ['5']);
    const seen = [await first.next(), await first.next(), await first.next()];
    expect(seen.map(({ value }) => value)).toEqual([0, 1, 2]);
    first.leave();

    // To another instance, then to this one: every token inside the commit leads before it, the last one's after it.
    const again = await subscribe(peer, topic, at(seen, 2).token);
    const whole = [await again.next(), await again.next(), await again.next(), await again.next()];
    expect(whole.map(({ value }) => value)).toEqual([1, 2, 3, 4]);
    expect(whole.slice(0, 2).map(({ token }) => token)).toEqual([seen[1]?.token, seen[2]?.token]);
    expect(new Set(whole.map(({ token }) => token)).size).toBe(4);
    again.leave();
    for (const [token, value] of [
      [seen[0]?.token, 1],
      ...whole.map((frame, index) => [frame.token, index < 3 ? 1 : 5] as const),
    ] as const) {
      const resumed = await subscribe(harness.broker, topic, token);
      expect((await resumed.next()).value).toBe(value);
      resumed.leave();
    }
  });

  test('whoever reads beside two writers never sees a part of a commit, nor a tip inside one', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    let writing = true;
    const writers = Promise.all(
      [log, peerLog].map(async (writer, which) => {
        for (let count = 0; count < 30; count += 1) {
          const size = 1 + ((count + which) % 5);
          await writer.append(topic, numbered(size, `${which} ${count} ${size}`));
        }
      }),
    ).then(() => {
      writing = false;
    });
    let from = start;
    const read: string[][] = [];
    do {
      // Page by page from wherever the tip was: `readPage` checks that it ends where its commits do.
      for (const limit of [1, 1000]) {
        const { commits } = await readPage(log, topic, from, limit);
        read.push(...valuesOf(commits));
        from = commits.at(-1)?.position ?? from;
      }
      await new Promise(setImmediate);
    } while (writing);
    await writers;
    read.push(...valuesOf(await readAll(log, topic, from)));
    expect(read).toHaveLength(60);
    for (const values of read) {
      const [which, count, size] = at(values, 0).split(/[ -]/) as [string, string, string];
      expect(values).toEqual(numbered(Number(size), `${which} ${count} ${size}`));
    }
  });
}

interface Frame {
  readonly value: unknown;
  readonly token: string;
}

/** Subscribes to a feed of the topic; the client leaves with the test, or before. */
async function subscribe(
  broker: Broker,
  topic: string,
  lastEventId?: string,
): Promise<{ next(): Promise<Frame>; leave(): void }> {
  const feed = new Feed(broker, { lingerMs: 0 });
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const reader = await feed.open({ topic, lastEventId, args: {}, signal: left.signal });
  return {
    next: async () => (await reader.next()) ?? expect.fail('the feed has ended'),
    leave: () => left.abort(),
  };
}

/** JSON of the numbers from `first` to `last`. */
function numbers(first: number, last: number): string[] {
  return Array.from({ length: last - first + 1 }, (_, index) => String(first + index));
}
