import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { follow, startFollow } from './follower.ts';
import { appendEach, at, expectContiguous, numbered, readAll, tipOf, valuesOf } from './reading.ts';

/** What a live read delivers, and when it ends. */
export function followLaws(of: GetSubject): void {
  test('a live read hands over what is in the log, then what is appended', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    await appendEach(log, topic, ['a', 'b']);
    const follower = await follow(log, topic, start);
    await follower.received(2);
    await log.append(topic, ['c', 'd']);
    await follower.received(3);
    expect(valuesOf(follower.commits)).toEqual([['a'], ['b'], ['c', 'd']]);
    expectContiguous(start, follower.commits);
    expect(follower.commits).toEqual(await readAll(log, topic, start));
  });

  test('a live read says once that it stands, before any commit', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    await appendEach(log, topic, numbered(3));
    const follower = await follow(log, topic, start);
    await log.append(topic, 'last');
    await follower.received(4);
    expect(follower.calls[0]).toBe('live');
    expect(follower.calls.filter((call) => call === 'live')).toHaveLength(1);
    expect(follower.calls).not.toContain(0);
  });

  test('a sink is never called from inside follow or append', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    await log.append(topic, 'a');
    const follower = startFollow(log, topic, start);
    expect(follower.calls).toEqual([]);
    await follower.received(1);
    const before = follower.calls.length;
    const appending = log.append(topic, 'b');
    expect(follower.calls).toHaveLength(before);
    await appending;
    await follower.received(2);
  });

  test('what is appended between the page and the live read is kept', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    await log.append(topic, 'before');
    const position = await tipOf(log, topic);
    await appendEach(peerLog, topic, ['a', 'b']);
    const follower = startFollow(log, topic, position);
    await peerLog.append(topic, 'c');
    await follower.received(3);
    expect(valuesOf(follower.commits).flat()).toEqual(['a', 'b', 'c']);
  });

  test('a live read of a topic never written to delivers its first commit', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const follower = await follow(log, topic, await tipOf(log, topic));
    await peerLog.append(topic, 'first');
    await follower.received(1);
    expect(valuesOf(follower.commits)).toEqual([['first']]);
  });

  test('a live read of a topic trimmed to empty delivers its next commit', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const tip = await log.append(topic, 'a');
    await harness.trim(topic, 0);
    const follower = await follow(log, topic, tip);
    await peerLog.append(topic, 'b');
    await follower.received(1);
    expect(valuesOf(follower.commits)).toEqual([['b']]);
  });

  test('300 commits are caught up with, from the start and from the middle', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const positions = await Promise.all(numbered(300).map((value) => log.append(topic, value)));
    const whole = await follow(log, topic, start);
    const rest = await follow(log, topic, at(positions, 99));
    await Promise.all([whole.received(300), rest.received(200)]);
    expect(valuesOf(whole.commits).flat()).toEqual(numbered(300));
    expect(valuesOf(rest.commits).flat()).toEqual(numbered(300).slice(100));
  });

  test('commits that are appended while a live read catches up come once, in order', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const writing = appendEach(peerLog, topic, numbered(200));
    const follower = startFollow(log, topic, start);
    await writing;
    await follower.received(200);
    expectContiguous(start, follower.commits);
    expect(valuesOf(follower.commits).flat()).toEqual(numbered(200));
  });

  test('a commit appended by a sink is delivered too', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const echoes: Promise<unknown>[] = [];
    const follower = await follow(log, topic, start, (commits) => {
      if (at(commits, -1).position.ordinal < 5) echoes.push(log.append(topic, 'echo'));
    });
    await log.append(topic, 'a');
    await follower.received(5);
    await Promise.all(echoes);
    expectContiguous(start, follower.commits);
  });

  test('a large commit is delivered whole', async () => {
    const { log } = of();
    const topic = freshTopic();
    const follower = await follow(log, topic, await tipOf(log, topic));
    await log.append(topic, numbered(2000));
    await follower.received(1);
    expect(valuesOf(follower.commits)).toEqual([numbered(2000)]);
  });

  test('many live reads of one topic each see all', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const followers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        follow(index % 2 === 0 ? log : peerLog, topic, start),
      ),
    );
    await appendEach(log, topic, numbered(10));
    for (const follower of followers) {
      await follower.received(10);
      expect(valuesOf(follower.commits).flat()).toEqual(numbered(10));
    }
  });

  test('live reads of many topics each see their own', async () => {
    const { log, peerLog } = of();
    const topics = Array.from({ length: 40 }, () => freshTopic());
    const followers = await Promise.all(
      topics.map(async (topic) => follow(log, topic, await tipOf(log, topic))),
    );
    for (const round of ['one', 'two']) {
      await Promise.all(topics.map((topic) => peerLog.append(topic, `${round} ${topic}`)));
    }
    for (const [index, follower] of followers.entries()) {
      await follower.received(2);
      const topic = at(topics, index);
      expect(valuesOf(follower.commits)).toEqual([[`one ${topic}`], [`two ${topic}`]]);
    }
  });

  test('an abort ends a waiting live read with undefined', async () => {
    const { log } = of();
    const topic = freshTopic();
    const follower = await follow(log, topic, await tipOf(log, topic));
    follower.abort();
    expect(await follower.ended).toBe(undefined);
  });

  test('an abort releases the read: nothing is delivered any more', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const leaving = await follow(log, topic, start);
    const staying = await follow(log, topic, start);
    await log.append(topic, 'a');
    await Promise.all([leaving.received(1), staying.received(1)]);
    leaving.abort();
    await log.append(topic, 'b');
    await leaving.ended;
    await staying.received(2);
    expect(valuesOf(leaving.commits)).toEqual([['a']]);
  });

  test('an abort from inside the sink ends the read after that call', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const follower = startFollow(log, topic, start, () => follower.abort());
    await log.append(topic, 'a');
    expect(await follower.ended).toBe(undefined);
    await log.append(topic, 'b');
    expect(valuesOf(follower.commits)).toEqual([['a']]);
  });

  test('a live read whose signal has aborted already delivers nothing', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    await log.append(topic, 'a');
    const sink = { live: () => {}, commits: () => expect.fail('delivered') };
    expect(await log.follow(topic, start, sink, AbortSignal.abort())).toBe(undefined);
  });

  test('a thousand short live reads leave later ones unharmed', async () => {
    const { log } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    for (let round = 0; round < 20; round += 1) {
      const short = await Promise.all(Array.from({ length: 50 }, () => follow(log, topic, start)));
      await Promise.all(short.map((follower) => follower.stop()));
    }
    const follower = await follow(log, topic, start);
    await log.append(topic, 'a');
    await follower.received(1);
  });
}
