import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { appendEach, at, numbered, readAll, readPage, tipOf, valuesOf } from './reading.ts';

/** What a page holds. */
export function logLaws(of: GetSubject): void {
  test('a page from "latest" is the tip: what is appended after it is read from there', async () => {
    const { log } = of();
    const topic = freshTopic();
    await appendEach(log, topic, ['a', 'b']);
    const page = await readPage(log, topic, 'latest');
    expect([page.commits.length, page.atTip]).toEqual([0, true]);
    await log.append(topic, 'c');
    expect(valuesOf(await readAll(log, topic, page.from))).toEqual([['c']]);
  });

  test('a page from "earliest" starts at the oldest retained commit', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(6));
    await harness.trim(topic, 2);
    const page = await readPage(log, topic, 'earliest');
    expect(valuesOf(page.commits)).toEqual([['v-4'], ['v-5']]);
    expect(page.from).toEqual(positions[3]);
  });

  test('a position resumes exactly after its commit', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(10));
    for (const [index, position] of positions.entries()) {
      const page = await readPage(peerLog, topic, position);
      expect(page.from).toEqual(position);
      expect(valuesOf(page.commits).flat()).toEqual(numbered(10).slice(index + 1));
    }
  });

  test('300 commits are caught up with over several pages, from the start and from the middle', async () => {
    const { log } = of();
    const topic = freshTopic();
    const positions = await Promise.all(numbered(300).map((value) => log.append(topic, value)));
    for (const limit of [64, 300, 1000]) {
      const commits = await readAll(log, topic, 'earliest', limit);
      expect(valuesOf(commits).flat()).toEqual(numbered(300));
    }
    const rest = await readAll(log, topic, at(positions, 99), 64);
    expect(valuesOf(rest).flat()).toEqual(numbered(300).slice(100));
  });

  test('a limit of 0 reads nothing and still tells verdict, bounds and tip', async () => {
    const { log } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, ['a', 'b']);
    const behind = await readPage(log, topic, at(positions, 0), 0);
    expect([behind.commits.length, behind.atTip]).toEqual([0, false]);
    expect(behind.bounds.last).toEqual(positions[1]);
    const atTip = await readPage(log, topic, at(positions, 1), 0);
    expect([atTip.commits.length, atTip.atTip]).toEqual([0, true]);
  });

  test('a limit counts commits, and never cuts one', async () => {
    const { log } = of();
    const topic = freshTopic();
    for (const value of ['a', 'b', 'c']) await log.append(topic, numbered(5, value));
    const page = await readPage(log, topic, 'earliest', 1);
    expect(valuesOf(page.commits)).toEqual([numbered(5, 'a')]);
    const commits = await readAll(log, topic, 'earliest', 1);
    expect(valuesOf(commits)).toEqual(['a', 'b', 'c'].map((value) => numbered(5, value)));
  });

  test('a page that ends with the newest commit says that it is at the tip', async () => {
    const { log } = of();
    const topic = freshTopic();
    await appendEach(log, topic, ['a', 'b', 'c']);
    const short = await readPage(log, topic, 'earliest', 2);
    expect(short.atTip).toBe(false);
    const exact = await readPage(log, topic, at(short.commits, -1).position, 1);
    expect([exact.commits.length, exact.atTip]).toEqual([1, true]);
  });

  test('a commit says the same of itself to every reader, before and after a trim', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, ['a', 'b', 'c']);
    const { commits } = await readPage(log, topic, 'earliest');
    const [, , last] = commits;
    await harness.trim(topic, 1);
    for (const from of ['earliest', at(positions, 1)] as const) {
      for (const reader of [log, peerLog]) {
        const page = await readPage(reader, topic, from);
        expect(page.commits).toEqual([last]);
      }
    }
  });

  test('bounds are those of a page, on every instance', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const unwritten = await log.bounds(topic);
    expect(unwritten.first).toEqual(unwritten.last);
    expect(unwritten.last.ordinal).toBe(0);
    const positions = await appendEach(log, topic, numbered(5));
    expect(await log.bounds(topic)).toEqual({ first: unwritten.first, last: positions[4] });
    await harness.trim(topic, 2);
    const bounds = await log.bounds(topic);
    expect(bounds).toEqual({ first: positions[2], last: positions[4] });
    expect(await peerLog.bounds(topic)).toEqual(bounds);
    expect((await readPage(log, topic, 'latest', 0)).bounds).toEqual(bounds);
  });

  test('a topic is read while it is written, without a hole or a repeat', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    let next = await tipOf(peerLog, topic);
    const writing = appendEach(log, topic, numbered(100));
    const read: string[] = [];
    while (read.length < 100) {
      const page = await readPage(peerLog, topic, next, 9);
      read.push(...valuesOf(page.commits).flat());
      next = page.commits.at(-1)?.position ?? next;
    }
    await writing;
    expect(read).toEqual(numbered(100));
  });
}
