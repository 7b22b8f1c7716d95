import type { CommitLog } from '@brokerfeed/core';
import { expect, type TestContext, test } from 'vitest';
import { commitSubject, freshTopic, type GetSubject } from './broker-harness.ts';
import { follow } from './follower.ts';
import { at, readAll, readPage, tipOf, valuesOf } from './reading.ts';

interface CommitSubject {
  readonly log: CommitLog;
  readonly peerLog: CommitLog;
}

/** What a commit across topics writes. Skipped for a broker that takes none. */
export function commitLaws(of: GetSubject): void {
  const law = (name: string, run: (subject: CommitSubject) => Promise<void>): void =>
    test(name, async (context: TestContext) => {
      const subject = await commitSubject(of());
      if (subject === undefined) return context.skip();
      await run(subject);
    });

  law('each topic gets one commit, and the positions come in the order of the list', async (of) => {
    const { log, peerLog } = of;
    const [a, b] = [freshTopic('a'), freshTopic('b')];
    await log.append(b, 'before');
    const { positions } = await log.appendAll([
      { topic: a, value: ['1', '2'], headers: { name: 'x' } },
      { topic: b, value: '3' },
    ]);
    expect(positions).toEqual([await tipOf(peerLog, a), await tipOf(peerLog, b)]);
    expect(positions.map(({ ordinal }) => ordinal)).toEqual([1, 2]);
    const { commits } = await readPage(peerLog, a, 'earliest');
    expect(valuesOf(commits)).toEqual([['1', '2']]);
    expect(at(at(commits, 0).entries, 1).headers).toEqual({ name: 'x' });
    const [, second] = await readAll(peerLog, b, 'earliest');
    expect(second?.entries.map(({ value, headers }) => [value, { ...headers }])).toEqual([
      ['3', {}],
    ]);
  });

  law('whoever has one part can read the others', async ({ log, peerLog }) => {
    const topics = [freshTopic('a'), freshTopic('b'), freshTopic('c')];
    const looks: Promise<{ readonly had: number; readonly found: readonly number[] }>[] = [];
    const look = async (had: number): Promise<{ had: number; found: readonly number[] }> => {
      const tips = await Promise.all(topics.map((topic) => tipOf(peerLog, topic)));
      return { had, found: tips.map(({ ordinal }) => ordinal) };
    };
    const followers = await Promise.all(
      topics.map(async (topic) =>
        follow(peerLog, topic, await tipOf(peerLog, topic), (commits) => {
          looks.push(look(at(commits, -1).position.ordinal));
        }),
      ),
    );
    for (let count = 0; count < 20; count += 1) {
      await log.appendAll(topics.map((topic) => ({ topic, value: String(count) })));
    }
    await Promise.all(followers.map((follower) => follower.received(20)));
    for (const { had, found } of await Promise.all(looks)) {
      expect(Math.min(...found)).toBeGreaterThanOrEqual(had);
    }
    const all = await Promise.all(topics.map((topic) => readAll(log, topic, 'earliest')));
    expect(new Set(all.map((commits) => JSON.stringify(valuesOf(commits)))).size).toBe(1);
  });

  law('commits of two instances across the same topics have one order', async (of) => {
    const { log, peerLog } = of;
    const [a, b] = [freshTopic('a'), freshTopic('b')];
    await Promise.all(
      Array.from({ length: 40 }, (_, index) => {
        const value = `v-${index}`;
        const parts = [
          { topic: a, value },
          { topic: b, value },
        ];
        if (index % 3 === 0) parts.reverse();
        return (index % 2 === 0 ? log : peerLog).appendAll(parts);
      }),
    );
    const inA = valuesOf(await readAll(log, a, 'earliest'));
    expect(inA).toHaveLength(40);
    expect(valuesOf(await readAll(log, b, 'earliest'))).toEqual(inA);
  });

  law('a refused part refuses the whole', async ({ log }) => {
    const [a, b] = [freshTopic('a'), freshTopic('b')];
    const good = { topic: a, value: 'a' };
    const refused: [
      string,
      readonly { topic: string; value: never }[] | readonly (typeof good)[],
    ][] = [
      ['VALUE_INVALID', [good, { topic: b, value: 5 as never }]],
      ['VALUE_INVALID', [good, { topic: b, value: [] as never }]],
      ['VALUE_INVALID', [good, { topic: a, value: 'again' as never }]],
      ['VALUE_INVALID', []],
      ['TOPIC_INVALID', [good, { topic: '', value: 'b' as never }]],
    ];
    for (const [code, appends] of refused) {
      await expect(log.appendAll(appends)).rejects.toMatchObject({ name: 'BrokerError', code });
    }
    await expect(
      log.appendAll([good, { topic: b, value: 'b', headers: { name: 5 as never } }]),
    ).rejects.toMatchObject({ code: 'HEADERS_INVALID' });
    await expect(log.appendAll([good], { idempotencyKey: '' })).rejects.toMatchObject({
      code: 'OPTION_INVALID',
    });
    expect(await readAll(log, a, 'earliest')).toEqual([]);
    expect(await readAll(log, b, 'earliest')).toEqual([]);
  });

  law(
    'a repeat under an idempotency key writes nothing and has the first positions',
    async (of) => {
      const { log, peerLog } = of;
      const [a, b] = [freshTopic('a'), freshTopic('b')];
      const once = { idempotencyKey: freshTopic('key') };
      const parts = [
        { topic: a, value: 'a' },
        { topic: b, value: ['b', 'c'] },
      ];
      const { positions } = await log.appendAll(parts, once);
      await log.append(a, 'between');
      const repeats = await Promise.all([log, peerLog, log].map((at) => at.appendAll(parts, once)));
      for (const repeat of repeats) expect(repeat.positions).toEqual(positions);
      expect(valuesOf(await readAll(peerLog, b, 'earliest'))).toEqual([['b', 'c']]);
      for (const others of [[parts[0]], [parts[0], { topic: b, value: ['b'] }]]) {
        await expect(peerLog.appendAll(others as typeof parts, once)).rejects.toMatchObject({
          code: 'IDEMPOTENCY_CONFLICT',
        });
      }
    },
  );

  law('repeats that run at the same time on two instances write once', async (of) => {
    const { log, peerLog } = of;
    const parts = [freshTopic('a'), freshTopic('b')].map((topic) => ({ topic, value: 'x' }));
    const once = { idempotencyKey: freshTopic('key') };
    const all = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? log : peerLog).appendAll(
          parts.map((part) => ({ ...part, headers: { attempt: String(index) } })),
          once,
        ),
      ),
    );
    for (const { positions } of all) expect(positions).toEqual(all[0]?.positions);
    for (const { topic } of parts) expect(await readAll(log, topic, 'earliest')).toHaveLength(1);
  });

  law(
    'of other values under one key at the same time, one is written and the rest refused',
    async (of) => {
      const { log, peerLog } = of;
      const [a, b] = [freshTopic('a'), freshTopic('b')];
      const once = { idempotencyKey: freshTopic('key') };
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, index) =>
          (index % 2 === 0 ? log : peerLog).appendAll(
            [
              { topic: a, value: 'same' },
              { topic: b, value: `v-${index}` },
            ],
            once,
          ),
        ),
      );
      const refused = results.filter((result) => result.status === 'rejected');
      expect(refused).toHaveLength(9);
      for (const { reason } of refused)
        expect(reason).toMatchObject({ code: 'IDEMPOTENCY_CONFLICT' });
      expect(await readAll(log, a, 'earliest')).toHaveLength(1);
      expect(await readAll(log, b, 'earliest')).toHaveLength(1);
    },
  );

  law('a refused commit does not use up its key', async ({ log }) => {
    const [a, b] = [freshTopic('a'), freshTopic('b')];
    const once = { idempotencyKey: freshTopic('key') };
    const good = { topic: a, value: 'x' };
    await expect(log.appendAll([good, { topic: b, value: [] }], once)).rejects.toMatchObject({
      code: 'VALUE_INVALID',
    });
    await log.appendAll([good, { topic: b, value: 'y' }], once);
    expect(valuesOf(await readAll(log, b, 'earliest'))).toEqual([['y']]);
  });

  law('the key of a commit across topics is not that of a single topic', async ({ log }) => {
    const topic = freshTopic();
    const once = { idempotencyKey: freshTopic('key') };
    await log.append(topic, 'a', once);
    const { positions } = await log.appendAll([{ topic, value: 'b' }], once);
    expect(at(positions, 0).ordinal).toBe(2);
  });
}
