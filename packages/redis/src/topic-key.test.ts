import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeTopic, TopicKeys } from './topic-key.ts';

const name = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom('%', '{', '}', '2', '5', '7', 'B', 'D', ':') }),
);

test('two topics never share a key', () => {
  fc.assert(
    fc.property(name, name, (a, b) => {
      expect(encodeTopic(a) === encodeTopic(b)).toBe(a === b);
    }),
    { numRuns: 2000 },
  );
});

test('a name is kept as it is, apart from what would pick the slot', () => {
  expect(encodeTopic('room:*')).toBe('room:*');
  expect(encodeTopic('../x?[a]')).toBe('../x?[a]');
  expect(encodeTopic('{a}%')).toBe('%7Ba%7D%25');
});

test('the key of an idempotency key is in the slot of its topic, and never the key of a topic', () => {
  fc.assert(
    fc.property(name, fc.constantFrom('p', '{t}', 'a{t}b'), fc.string(), (topic, prefix, key) => {
      const keys = new TopicKeys('', prefix);
      const topicKey = keys.topic(topic);
      const once = keys.once(topicKey, key);
      expect(hashed(once)).toBe(hashed(topicKey));
      expect(once.startsWith(`${prefix}:`) && !once.includes('%once:')).toBe(false);
    }),
  );
});

test('the channel of announcements is in the slot of its topic, and is no key or channel of a topic', () => {
  fc.assert(
    fc.property(name, name, fc.constantFrom('p', '{t}', 'a{t}b'), (topic, other, prefix) => {
      const keys = new TopicKeys('', prefix);
      const said = keys.said(topic);
      expect(hashed(said)).toBe(hashed(keys.topic(topic)));
      expect(said).not.toBe(keys.topic(other));
      expect(said === keys.said(other)).toBe(topic === other);
    }),
  );
});

test('under a hash tag the key of a commit across topics is in their slot, and nothing else', () => {
  fc.assert(
    fc.property(name, fc.constantFrom('p', '{t}', 'a{t}b'), fc.string(), (topic, prefix, key) => {
      const keys = new TopicKeys('', prefix);
      const topicKey = keys.topic(topic);
      const once = keys.onceForAll(key);
      if (prefix !== 'p') expect(hashed(once)).toBe(hashed(topicKey));
      expect([topicKey, keys.said(topic), keys.once(topicKey, key)]).not.toContain(once);
    }),
  );
});

test.each(['', '{', '}', 'a}b{', '{}', '{a}{b}', '{{a}}', 7, null])('%j is no prefix', (prefix) => {
  expect(() => new TopicKeys('', prefix)).toThrow(/^prefix is /);
});

/** What a cluster computes the slot of a key from. */
function hashed(key: string): string {
  return /^[^{]*\{([^}]+)\}/s.exec(key)?.[1] ?? key;
}
