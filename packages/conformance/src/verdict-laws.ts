import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { aheadOf, foreign, forkedAt } from './forged.ts';
import {
  appendEach,
  at,
  expectContiguous,
  numbered,
  readAll,
  readPage,
  tipOf,
  valuesOf,
  verdictOf,
} from './reading.ts';

/** Which positions can be read from, to the exact boundary. */
export function verdictLaws(of: GetSubject): void {
  test('whoever holds the last trimmed commit has lost nothing; one commit before it is trimmed', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(5));
    await harness.trim(topic, 2);
    for (const reader of [log, peerLog]) {
      expect(await verdictOf(reader, topic, at(positions, 1))).toBe('trimmed');
      const page = await readPage(reader, topic, at(positions, 2));
      expect(valuesOf(page.commits)).toEqual([['v-3'], ['v-4']]);
    }
  });

  test('the boundary moves with each trimmed commit', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const positions = [start, ...(await appendEach(log, topic, numbered(4)))];
    for (const keep of [4, 3, 2, 1, 0]) {
      await harness.trim(topic, keep);
      const verdicts: string[] = [];
      for (const position of positions) verdicts.push(await verdictOf(log, topic, position));
      const trimmed = 4 - keep;
      expect(verdicts).toEqual(positions.map((_, index) => (index < trimmed ? 'trimmed' : 'ok')));
    }
  });

  test('a refused page has bounds, and reading from the first of them starts afresh', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(5));
    await harness.trim(topic, 2);
    const { verdict, bounds } = await log.page(topic, at(positions, 0), 10);
    expect(verdict).toBe('trimmed');
    expect(bounds).toEqual(await log.bounds(topic));
    expect(valuesOf(await readAll(log, topic, bounds.first))).toEqual([['v-3'], ['v-4']]);
  });

  test('a refused page holds no commits', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(3));
    await harness.trim(topic, 1);
    const page = await log.page(topic, at(positions, 0), 10);
    expect(Object.keys(page).sort()).toEqual(['bounds', 'verdict']);
  });

  test('a topic never written to has a tip, and the first commit follows it', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const page = await readPage(log, topic, 'latest');
    expect([page.from.ordinal, page.commits.length, page.atTip]).toEqual([0, 0, true]);
    expect((await readPage(peerLog, topic, 'earliest')).from).toEqual(page.from);
    expect(await verdictOf(peerLog, topic, page.from)).toBe('ok');
    const position = await peerLog.append(topic, 'a');
    expect(position.epoch).toBe(page.from.epoch);
    expect(valuesOf(await readAll(log, topic, page.from))).toEqual([['a']]);
  });

  test('two instances that read a new topic at the same time agree on its epoch', async () => {
    const { log, peerLog } = of();
    for (let round = 0; round < 10; round += 1) {
      const topic = freshTopic();
      const [one, other, position] = await Promise.all([
        tipOf(log, topic),
        tipOf(peerLog, topic),
        peerLog.append(topic, 'a'),
      ]);
      expect([one.epoch, other.epoch]).toEqual([position.epoch, position.epoch]);
    }
  });

  test('a topic trimmed to empty keeps its tip: the tip is ok, all before it trimmed, ordinals go on', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const [first, last] = [await log.append(topic, 'a'), await log.append(topic, 'b')];
    await harness.trim(topic, 0);
    const page = await readPage(log, topic, last);
    expect([page.commits.length, page.atTip]).toEqual([0, true]);
    expect(page.bounds).toEqual({ first: last, last });
    expect((await readPage(log, topic, 'earliest')).from).toEqual(last);
    expect(await verdictOf(log, topic, first)).toBe('trimmed');
    const next = await log.append(topic, 'c');
    expect([next.epoch, next.ordinal]).toEqual([last.epoch, 3]);
    expect(valuesOf(await readAll(log, topic, last))).toEqual([['c']]);
    expect(await verdictOf(log, topic, first)).toBe('trimmed');
  });

  test('a topic deleted and written anew is another log: old positions answer "epoch"', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    const old = [start, ...(await appendEach(log, topic, numbered(3)))];
    await harness.drop(topic);
    const renewed = await appendEach(log, topic, numbered(4, 'new'));
    expect(renewed.map((position) => position.ordinal)).toEqual([1, 2, 3, 4]);
    for (const reader of [log, peerLog]) {
      for (const position of old) expect(await verdictOf(reader, topic, position)).toBe('epoch');
      expect(valuesOf(await readAll(reader, topic, 'earliest')).flat()).toEqual(numbered(4, 'new'));
    }
  });

  test('a topic deleted and only read has a new epoch, which its first commit keeps', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const old = await log.append(topic, 'a');
    await harness.drop(topic);
    expect(await verdictOf(peerLog, topic, old)).toBe('epoch');
    const tip = await tipOf(log, topic);
    expect(tip.ordinal).toBe(0);
    expect(tip.epoch).not.toBe(old.epoch);
    expect((await log.append(topic, 'b')).epoch).toBe(tip.epoch);
  });

  test('a position of another topic answers "epoch"', async () => {
    const { log } = of();
    const [one, other] = [freshTopic(), freshTopic()];
    const position = await log.append(one, 'a');
    await log.append(other, 'a');
    expect(await verdictOf(log, other, position)).toBe('epoch');
    expect(await verdictOf(log, other, foreign(position))).toBe('epoch');
  });

  test('a position past the end answers "ahead"', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const start = await tipOf(log, topic);
    expect(await verdictOf(log, topic, aheadOf(start))).toBe('ahead');
    const tip = at(await appendEach(log, topic, numbered(3)), -1);
    for (const count of [1, 2, 1000]) {
      expect(await verdictOf(log, topic, aheadOf(tip, count))).toBe('ahead');
    }
    await harness.trim(topic, 0);
    expect(await verdictOf(log, topic, aheadOf(tip))).toBe('ahead');
  });

  test('a retained place under another id answers "forked"', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(4));
    const forged = [
      [1, 2],
      [1, 0],
      [0, 3],
      [3, 2],
    ].map(([place = 0, other = 0]) => forkedAt(at(positions, place), at(positions, other)));
    const tip = at(positions, -1);
    for (const position of [...forged, forkedAt(tip, aheadOf(tip))]) {
      expect(await verdictOf(log, topic, position)).toBe('forked');
      expect(await verdictOf(peerLog, topic, position)).toBe('forked');
    }
  });

  test('where several losses apply, the epoch is named first, then the end, then the trim', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const positions = await appendEach(log, topic, numbered(4));
    await harness.trim(topic, 1);
    const [first, last] = [at(positions, 0), at(positions, -1)];
    expect(await verdictOf(log, topic, foreign(first))).toBe('epoch');
    expect(await verdictOf(log, topic, foreign(aheadOf(last)))).toBe('epoch');
    expect(await verdictOf(log, topic, forkedAt(first, last))).toBe('trimmed');
  });

  test('pages read while the topic is trimmed are whole or refused, never in between', async () => {
    const { log, peerLog, harness } = of();
    const topic = freshTopic();
    const positions = await Promise.all(numbered(200).map((value) => log.append(topic, value)));
    const trims: Promise<void>[] = [];
    let from = at(positions, 0);
    for (let keep = 198; ; keep -= 7) {
      if (keep >= 0) trims.push(harness.trim(topic, keep));
      const page = await peerLog.page(topic, from, 5);
      if (page.verdict === 'ok') {
        expectContiguous(from, page.commits);
        from = page.commits.at(-1)?.position ?? from;
        if (page.atTip) break;
      } else {
        expect(page.verdict).toBe('trimmed');
        expect(page.bounds.first.ordinal).toBeGreaterThan(from.ordinal);
        from = page.bounds.first;
      }
    }
    await Promise.all(trims);
    expect(from).toEqual(at(positions, -1));
  });
}
