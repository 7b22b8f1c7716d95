import { expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { readAll, valuesOf } from './reading.ts';

const CONFLICT = { name: 'BrokerError', code: 'IDEMPOTENCY_CONFLICT' };

/** What a key makes of a repeated append. */
export function idempotencyLaws(of: GetSubject): void {
  test('a repeated append writes nothing and resolves with the first position', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const first = await log.append(topic, ['a', 'b'], { idempotencyKey: 'k' });
    await log.append(topic, 'between');
    expect(await log.append(topic, ['a', 'b'], { idempotencyKey: 'k' })).toEqual(first);
    expect(await peerLog.append(topic, ['a', 'b'], { idempotencyKey: 'k' })).toEqual(first);
    expect(valuesOf(await readAll(log, topic, 'earliest'))).toEqual([['a', 'b'], ['between']]);
  });

  test('a text and a list of that one text are the same values', async () => {
    const { log } = of();
    const topic = freshTopic();
    const first = await log.append(topic, 'a', { idempotencyKey: 'k' });
    expect(await log.append(topic, ['a'], { idempotencyKey: 'k' })).toEqual(first);
  });

  test('headers do not make it another append: those of the first are kept', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const options = { idempotencyKey: 'k' };
    const first = await log.append(topic, 'a', { ...options, headers: { trace: '1' } });
    expect(await peerLog.append(topic, 'a', { ...options, headers: { trace: '2' } })).toEqual(
      first,
    );
    expect(await log.append(topic, 'a', options)).toEqual(first);
    const [commit] = await readAll(log, topic, 'earliest');
    expect(commit?.entries.map(({ headers }) => ({ ...headers }))).toEqual([{ trace: '1' }]);
  });

  test.each([
    ['another text', 'a', 'b'],
    ['a longer commit', ['a'], ['a', '']],
    ['the same text cut elsewhere', ['ab', 'c'], ['a', 'bc']],
    ['the same entries in another order', ['a', 'b'], ['b', 'a']],
    ['a list against its own JSON', ['a', 'b'], '["a","b"]'],
    ['a list against its own commas', ['a', 'b'], 'a,b'],
  ])('a key used again for other values is refused: %s', async (_, values, others) => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const first = await log.append(topic, values, { idempotencyKey: 'k' });
    await expect(log.append(topic, others, { idempotencyKey: 'k' })).rejects.toMatchObject(
      CONFLICT,
    );
    await expect(peerLog.append(topic, others, { idempotencyKey: 'k' })).rejects.toMatchObject(
      CONFLICT,
    );
    expect(await log.append(topic, values, { idempotencyKey: 'k' })).toEqual(first);
    expect(await readAll(log, topic, 'earliest')).toHaveLength(1);
  });

  test('duplicates that run at the same time on two instances write once', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const positions = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? log : peerLog).append(topic, ['a', 'b'], { idempotencyKey: 'k' }),
      ),
    );
    for (const position of positions) expect(position).toEqual(positions[0]);
    expect(valuesOf(await readAll(log, topic, 'earliest'))).toEqual([['a', 'b']]);
  });

  test('of different values under one key at the same time, one is written and the rest refused', async () => {
    const { log, peerLog } = of();
    const topic = freshTopic();
    const results = await Promise.allSettled(
      Array.from({ length: 10 }, (_, index) =>
        (index % 2 === 0 ? log : peerLog).append(topic, `v-${index}`, { idempotencyKey: 'k' }),
      ),
    );
    const refused = results.filter((result) => result.status === 'rejected');
    expect(refused).toHaveLength(9);
    for (const { reason } of refused) expect(reason).toMatchObject(CONFLICT);
    expect(await readAll(log, topic, 'earliest')).toHaveLength(1);
  });

  test('keys are literal: each spelling is another key', async () => {
    const { log } = of();
    const topic = freshTopic();
    const keys = ['k', 'K', 'k ', 'k*', '*', '__proto__', '../k', '🗝', 'x'.repeat(256)];
    for (const idempotencyKey of keys) await log.append(topic, 'a', { idempotencyKey });
    for (const idempotencyKey of keys) await log.append(topic, 'a', { idempotencyKey });
    expect(await readAll(log, topic, 'earliest')).toHaveLength(keys.length);
  });

  test('a key belongs to its topic', async () => {
    const { log } = of();
    const [one, other] = [freshTopic(), freshTopic()];
    await log.append(one, 'a', { idempotencyKey: 'k' });
    await log.append(other, 'b', { idempotencyKey: 'k' });
    expect(valuesOf(await readAll(log, other, 'earliest'))).toEqual([['b']]);
  });

  test('an append without a key is never a repeat', async () => {
    const { log } = of();
    const topic = freshTopic();
    await log.append(topic, 'a', { idempotencyKey: 'k' });
    await log.append(topic, 'a');
    await log.append(topic, 'a');
    expect(await readAll(log, topic, 'earliest')).toHaveLength(3);
  });

  test('a key outlives the trim of its commit', async () => {
    const { log, harness } = of();
    const topic = freshTopic();
    const first = await log.append(topic, 'a', { idempotencyKey: 'k' });
    await log.append(topic, 'b');
    await harness.trim(topic, 1);
    expect(await log.append(topic, 'a', { idempotencyKey: 'k' })).toEqual(first);
    expect(valuesOf(await readAll(log, topic, 'earliest'))).toEqual([['b']]);
  });

  test('a refused append does not use up its key', async () => {
    const { log } = of();
    const topic = freshTopic();
    await expect(log.append(topic, [], { idempotencyKey: 'k' })).rejects.toMatchObject({
      code: 'VALUE_INVALID',
    });
    await log.append(topic, 'a', { idempotencyKey: 'k' });
    expect(valuesOf(await readAll(log, topic, 'earliest'))).toEqual([['a']]);
  });
}
