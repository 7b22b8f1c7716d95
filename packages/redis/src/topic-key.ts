import { createHash } from 'node:crypto';
import { refuseOption } from '@brokerfeed/core';

/**
 * A prefix may hold one hash tag, so that its owner keeps all topics in one slot. More or unbalanced braces would leave it
 * to a topic's name where a tag ends.
 */
const PREFIX_PATTERN = /^[^{}]*(\{[^{}]+\}[^{}]*)?$/;

const ENCODED: Readonly<Record<string, string>> = { '%': '%25', '{': '%7B', '}': '%7D' };

/** Names the keys of one broker. */
export class TopicKeys {
  readonly #prefix: string;
  readonly #tagged: boolean;
  readonly #saidEnd: string;

  /**
   * `clientPrefix` is the `keyPrefix` of the user's client: ours have none, since a script's replies are not stripped.
   * `database` is the one that its keys are in.
   */
  constructor(clientPrefix: string, prefix: unknown, database = 0) {
    if (typeof prefix !== 'string' || prefix === '' || !prefix.isWellFormed()) {
      refuseOption('prefix', 'non-empty text', prefix);
    }
    const whole = `${clientPrefix}${prefix}`;
    if (!PREFIX_PATTERN.test(whole)) {
      refuseOption(
        'prefix',
        "text with at most one {hash tag}, the client's keyPrefix included",
        whole,
      );
    }
    this.#prefix = `${whole}:`;
    this.#tagged = whole.includes('{');
    // All databases of a server hear the same channels.
    this.#saidEnd = database === 0 ? 'said' : `said:${database}`;
  }

  /** Names the one key that holds a topic. Two topics never share one. */
  topic(topic: string): string {
    return this.#prefix + encodeTopic(topic);
  }

  /** Names the channel of a topic's announcements: in the topic's slot, and never that of its commits. */
  said(topic: string): string {
    const key = this.topic(topic);
    return this.#tagged ? `${key}%${this.#saidEnd}` : `{${key}}:${this.#saidEnd}`;
  }

  /** Names the key that remembers an idempotency key: in the topic's slot, and never the key of a topic. */
  once(topicKey: string, idempotencyKey: string): string {
    const digest = digestOf(idempotencyKey);
    // No encoded topic holds a % that no two hex digits follow.
    return this.#tagged ? `${topicKey}%once:${digest}` : `{${topicKey}}:once:${digest}`;
  }

  /** Names the key that remembers the idempotency key of a commit across topics. In their slot if the prefix has a hash tag. */
  onceForAll(idempotencyKey: string): string {
    const digest = digestOf(idempotencyKey);
    return this.#tagged ? `${this.#prefix}%all:${digest}` : `{${this.#prefix}}all:${digest}`;
  }
}

/** Encodes a topic's name so that it holds no brace: a cluster picks the slot of a key by what stands in its braces. */
export function encodeTopic(topic: string): string {
  return topic.replace(/[%{}]/g, (char) => ENCODED[char] as string);
}

function digestOf(idempotencyKey: string): string {
  return createHash('sha256').update(idempotencyKey).digest('base64url');
}
