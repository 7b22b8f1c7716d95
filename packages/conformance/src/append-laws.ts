import type { Entry } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { appendEach, at, numbered, readAll, readPage, tipOf, valuesOf } from './reading.ts';

const EPOCH = /^[A-Za-z0-9_-]{12}$/;
const ID = /^\d{1,20}(-\d{1,20})?$/;

const TEXTS: readonly string[] = [
  '',
  ' ',
  '\0',
  'line\r\nline\n',
  '"quoted" \\ {"json":[1,2]}',
  'žluťoučký kůň · 日本語 · עברית',
  '👩‍👩‍👧‍👦 \u{10FFFF} \uFEFF',
  'x'.repeat(200_000),
];

const NAMES: readonly string[] = [
  'room:*',
  'room:?',
  '../x',
  '..',
  '/',
  'a{b}',
  'a{b}c',
  '{}',
  'two words',
  ' ',
  '\n',
  '%2e',
  '~',
  '__proto__',
  'constructor',
  '日本',
  '🧾',
  'A',
  'a',
];

/** What an append writes, and that it writes it whole. */
export function appendLaws(of: GetSubject): void {
  test('appends are read in their order, each at a position of its own', async () => {
    const { log } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(20));
    const commits = await readAll(log, topic, 'earliest');
    expect(valuesOf(commits)).toEqual(numbered(20).map((value) => [value]));
    expect(commits.map((commit) => commit.position)).toEqual(positions);
    expect(positions.map((position) => position.ordinal)).toEqual(
      numbered(20).map((_, i) => i + 1),
    );
    expect(new Set(positions.map((position) => position.id)).size).toBe(20);
  });

  test('positions have the form that a resume token can carry', async () => {
    const { log } = of();
    const topic = freshTopic();
    const before = await tipOf(log, topic);
    const after = await log.append(topic, 'a');
    for (const position of [before, after]) {
      expect(position.epoch).toMatch(EPOCH);
      expect(position.id).toMatch(ID);
      expect(Object.keys(position).sort()).toEqual(['epoch', 'id', 'ordinal']);
    }
  });

  test('any well-formed text comes back as it was given', async () => {
    const { log } = of();
    const topic = freshTopic();
    await log.append(topic, TEXTS);
    await appendEach(log, topic, TEXTS);
    const commits = await readAll(log, topic, 'earliest');
    expect(valuesOf(commits)).toEqual([[...TEXTS], ...TEXTS.map((text) => [text])]);
  });

  test('headers come back with every entry of the commit, as frozen bags without prototype', async () => {
    const { log } = of();
    const topic = freshTopic();
    const headers: Record<string, string> = Object.fromEntries([
      ['__proto__', 'an ordinary name'],
      ['constructor', ''],
      ['', 'empty name'],
      ['traceparent', '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'],
      ['ключ 🗝', 'значення "quoted"'],
    ]);
    await log.append(topic, ['a', 'b'], { headers });
    const { commits } = await readPage(log, topic, 'earliest');
    for (const entry of at(commits, 0).entries) {
      expect(Object.entries(entry.headers).sort()).toEqual(Object.entries(headers).sort());
      expectBag(entry);
    }
  });

  test('an append without headers has an empty bag', async () => {
    const { log } = of();
    const topic = freshTopic();
    await log.append(topic, 'a');
    const { commits } = await readPage(log, topic, 'earliest');
    const entry = at(at(commits, 0).entries, 0);
    expect(Object.keys(entry.headers)).toEqual([]);
    expectBag(entry);
  });

  test('what the caller changes after the call is not in the log', async () => {
    const { log } = of();
    const topic = freshTopic();
    const values = ['a', 'b'];
    const headers = { name: 'before' };
    const appending = log.append(topic, values, { headers });
    values[0] = 'changed';
    headers.name = 'changed';
    await appending;
    const { commits } = await readPage(log, topic, 'earliest');
    expect(valuesOf(commits)).toEqual([['a', 'b']]);
    expect(at(at(commits, 0).entries, 0).headers.name).toBe('before');
  });

  test('an append that has resolved is read by every instance', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    for (let count = 1; count <= 10; count += 1) {
      const [writer, reader] = count % 2 === 0 ? [log, peerLog] : [peerLog, log];
      const position = await writer.append(topic, `v-${count}`);
      expect(position.ordinal).toBe(count);
      expect(await tipOf(reader, topic)).toEqual(position);
    }
    expect(await readAll(peerLog, topic, 'earliest')).toEqual(
      await readAll(log, topic, 'earliest'),
    );
  });

  test('a commit of many entries is one place in the log', async () => {
    const { log } = of();
    const topic = freshTopic();
    const first = await log.append(topic, numbered(500));
    const second = await log.append(topic, 'after');
    expect([first.ordinal, second.ordinal]).toEqual([1, 2]);
    const { commits } = await readPage(log, topic, 'earliest', 1);
    expect(valuesOf(commits)).toEqual([numbered(500)]);
  });

  test('concurrent appends of two instances never mix their entries', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const writers = Array.from({ length: 40 }, (_, index) => {
      const values = numbered(1 + (index % 5), `w${index}`);
      return { values, appending: (index % 2 === 0 ? log : peerLog).append(topic, values) };
    });
    const written = new Map<number, string[]>();
    for (const { values, appending } of writers) written.set((await appending).ordinal, values);
    const commits = await readAll(log, topic, 'earliest', 7);
    expect(commits).toHaveLength(40);
    for (const commit of commits) {
      expect(valuesOf([commit])).toEqual([written.get(commit.position.ordinal)]);
    }
  });

  test('appends that one caller makes without waiting keep their order', async () => {
    const { log } = of();
    const topic = freshTopic();
    await Promise.all(numbered(50).map((value) => log.append(topic, value)));
    const commits = await readAll(log, topic, 'earliest');
    expect(valuesOf(commits).flat()).toEqual(numbered(50));
  });

  test('topic names are literal, and topics know nothing of each other', async () => {
    const { log, peerLog } = of();
    const suffix = freshTopic('');
    const topics = [...NAMES.map((name) => name + suffix), ...NAMES.map((name) => suffix + name)];
    for (const topic of topics) await log.append(topic, topic);
    const epochs = new Set<string>();
    for (const topic of topics) {
      const page = await readPage(peerLog, topic, 'earliest');
      expect(valuesOf(page.commits)).toEqual([[topic]]);
      epochs.add(page.from.epoch);
    }
    expect(epochs.size).toBe(topics.length);
  });

  test('the longest topic name is as good as any', async () => {
    const { log } = of();
    const suffix = freshTopic('');
    const long = 'é'.repeat((512 - suffix.length - 1) / 2);
    for (const last of ['a', 'b']) await log.append(`${long}${suffix}${last}`, last);
    for (const last of ['a', 'b']) {
      const { commits } = await readPage(log, `${long}${suffix}${last}`, 'earliest');
      expect(valuesOf(commits)).toEqual([[last]]);
    }
  });
}

function expectBag(entry: Entry): void {
  expect(Object.getPrototypeOf(entry.headers)).toBe(null);
  expect(Object.isFrozen(entry.headers)).toBe(true);
}
