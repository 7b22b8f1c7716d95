import type { AppendOptions, Retention } from '@brokerfeed/core';
import { describe, expect, test } from 'vitest';
import { freshTopic, type GetSubject } from './broker-harness.ts';
import { readPage, valuesOf } from './reading.ts';

const LONE_SURROGATE = 'half \ud83d of a pair';

const BAD_TOPICS: readonly (readonly [what: string, topic: unknown])[] = [
  ['an empty name', ''],
  ['513 characters', 'x'.repeat(513)],
  ['513 bytes in fewer characters', `${'é'.repeat(256)}x`],
  ['10 000 characters', 'x'.repeat(10_000)],
  ['a lone surrogate', LONE_SURROGATE],
  ['no name', undefined],
  ['null', null],
  ['a number', 7],
  ['an array', ['a']],
];

const BAD_VALUES: readonly (readonly [what: string, value: unknown])[] = [
  ['no entries', []],
  ['10 001 entries', Array.from({ length: 10_001 }, () => '')],
  ['a lone surrogate', LONE_SURROGATE],
  ['a lone surrogate after a good entry', ['good', LONE_SURROGATE]],
  ['a number', 7],
  ['a number after a good entry', ['good', 7]],
  ['undefined', undefined],
  ['null', null],
  ['an object', { value: 'a' }],
  ['a hole', ['good', undefined]],
];

const BAD_HEADERS: readonly (readonly [what: string, headers: unknown])[] = [
  ['a number', { name: 7 }],
  ['undefined inside', { name: undefined }],
  ['a list inside', { name: ['a'] }],
  ['a lone surrogate as a value', { name: LONE_SURROGATE }],
  ['a lone surrogate as a name', { [LONE_SURROGATE]: 'a' }],
  ['a list', [['name', 'a']]],
  ['a text', 'name'],
  ['null', null],
];

const BAD_KEYS: readonly (readonly [what: string, key: unknown])[] = [
  ['an empty key', ''],
  ['257 characters', 'x'.repeat(257)],
  ['a lone surrogate', LONE_SURROGATE],
  ['a number', 7],
];

const BAD_RETENTIONS: readonly (readonly [path: string, retention: unknown])[] = [
  ['retention', null],
  ['retention', 5],
  ['retention.maxEntries', { maxEntries: 0 }],
  ['retention.maxEntries', { maxEntries: 1.5 }],
  ['retention.maxEntries', { maxEntries: Number.POSITIVE_INFINITY }],
  ['retention.maxAgeMs', { maxEntries: 1, maxAgeMs: -1 }],
  ['retention.maxAgeMs', { maxAgeMs: '1h' }],
];

/** What is refused by code, with nothing written. */
export function refusalLaws(of: GetSubject): void {
  describe.each(BAD_TOPICS)('a topic that is %s', (_, bad) => {
    // The tables hold what the types forbid.
    const topic = bad as string;
    const refused = { name: 'BrokerError', code: 'TOPIC_INVALID' };

    test('is refused by every method', async () => {
      const { log } = of();
      const position = await log.append(freshTopic(), 'a');
      const sink = { live: () => expect.fail('live'), commits: () => expect.fail('commits') };
      const { signal } = new AbortController();
      await expect(log.append(topic, 'a')).rejects.toMatchObject(refused);
      await expect(log.page(topic, 'earliest', 1)).rejects.toMatchObject(refused);
      await expect(log.bounds(topic)).rejects.toMatchObject(refused);
      await expect(log.follow(topic, position, sink, signal)).rejects.toMatchObject(refused);
    });
  });

  test.each(BAD_VALUES)('a value that is %s is refused, and nothing is written', async (_, bad) => {
    await expectRefused(of, 'VALUE_INVALID', bad as string);
  });

  test.each(BAD_HEADERS)(
    'a header bag that is or holds %s is refused, and nothing is written',
    async (_, bad) => {
      await expectRefused(of, 'HEADERS_INVALID', ['a', 'b'], {
        headers: bad as Record<string, string>,
      });
    },
  );

  test.each(BAD_KEYS)(
    'an idempotency key that is %s is refused, and nothing is written',
    async (_, bad) => {
      await expectRefused(of, 'OPTION_INVALID', 'a', { idempotencyKey: bad as string });
    },
  );

  test.each(BAD_RETENTIONS)(
    '%s is refused by name in %o, and nothing is written',
    async (path, bad) => {
      const message = expect.stringMatching(new RegExp(`^${path} is `));
      await expectRefused(of, 'OPTION_INVALID', 'a', { retention: bad as Retention }, message);
    },
  );
}

async function expectRefused(
  of: GetSubject,
  code: string,
  value: string | readonly string[],
  options?: AppendOptions,
  message: unknown = expect.any(String),
): Promise<void> {
  const { log } = of();
  const topic = freshTopic();
  await log.append(topic, 'before');
  await expect(log.append(topic, value, options)).rejects.toMatchObject({
    name: 'BrokerError',
    code,
    message,
  });
  const after = await log.append(topic, 'after');
  expect(after.ordinal).toBe(2);
  const { commits } = await readPage(log, topic, 'earliest');
  expect(valuesOf(commits)).toEqual([['before'], ['after']]);
}
