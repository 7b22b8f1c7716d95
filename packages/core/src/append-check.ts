import type { AppendOptions, Entry, Headers, Retention } from './broker.ts';
import { describe } from './describe.ts';
import { BrokerError } from './errors.ts';
import { integerOption, refuseOption } from './option-check.ts';

/** The longest topic name, in UTF-8 bytes. */
export const MAX_TOPIC_BYTES = 512;

/** The most entries in one commit. */
export const MAX_COMMIT_ENTRIES = 10_000;

const MAX_KEY_LENGTH = 256;

/** Refuses a topic name that is not 1 to {@link MAX_TOPIC_BYTES} bytes of well-formed text. Every other name is literal. Throws `TOPIC_INVALID`. */
export function checkTopic(topic: unknown): asserts topic is string {
  if (
    typeof topic !== 'string' ||
    topic === '' ||
    topic.length > MAX_TOPIC_BYTES ||
    !topic.isWellFormed() ||
    Buffer.byteLength(topic) > MAX_TOPIC_BYTES
  ) {
    throw new BrokerError(
      'TOPIC_INVALID',
      `a topic is 1 to ${MAX_TOPIC_BYTES} bytes of well-formed text, not ${describe(topic)}`,
    );
  }
}

/** What an append was given, checked: the entries share one frozen header bag. */
export interface CheckedAppend {
  readonly entries: readonly Entry[];
  readonly headers: Headers;
  readonly idempotencyKey: string | undefined;
  readonly retention: Retention | undefined;
}

/** Checks the arguments of `append` for every broker alike. Throws a `BrokerError`; nothing has been written then. */
export function checkAppend(
  topic: string,
  value: string | readonly string[],
  options: AppendOptions = {},
  maxEntryBytes: number = Number.POSITIVE_INFINITY,
): CheckedAppend {
  checkTopic(topic);
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (values.length === 0 || values.length > MAX_COMMIT_ENTRIES) {
    throw new BrokerError(
      'VALUE_INVALID',
      `a commit has 1 to ${MAX_COMMIT_ENTRIES} entries, not ${values.length}`,
    );
  }
  const headers = checkHeaders(options.headers);
  const entries = values.map((text): Entry => {
    checkValue(text);
    // Counted only where it could matter: no UTF-16 unit becomes more than three bytes.
    if (text.length * 3 > maxEntryBytes && Buffer.byteLength(text) > maxEntryBytes) {
      throw new BrokerError(
        'ENTRY_TOO_LARGE',
        `a value of topic ${describe(topic)} has ${Buffer.byteLength(text)} bytes, more than ${maxEntryBytes}`,
      );
    }
    return { value: text, headers };
  });
  return {
    entries,
    headers,
    idempotencyKey: checkKey(options.idempotencyKey),
    retention: checkRetention(options.retention),
  };
}

/** Refuses a value that no store could keep as it is. Throws `VALUE_INVALID`. */
export function checkValue(text: unknown): asserts text is string {
  // A lone surrogate has no UTF-8: the store would keep another text than the one given.
  if (typeof text !== 'string' || !text.isWellFormed()) {
    throw new BrokerError('VALUE_INVALID', `a value is well-formed text, not ${describe(text)}`);
  }
}

/** Checks a retention, where one is given, and copies it. Throws `OPTION_INVALID`. */
export function checkRetention(retention: unknown): Retention | undefined {
  if (retention === undefined) return undefined;
  if (typeof retention !== 'object' || retention === null)
    refuseOption('retention', 'an object', retention);
  const checked: { -readonly [Bound in keyof Retention]: Retention[Bound] } = {};
  for (const bound of ['maxEntries', 'maxAgeMs'] as const) {
    const value = (retention as Retention)[bound];
    if (value !== undefined) checked[bound] = integerOption(`retention.${bound}`, value, value, 1);
  }
  return checked;
}

/** Makes a frozen header bag without prototype. */
export function headerBag(pairs: Iterable<readonly [string, string]>): Headers {
  const bag: Record<string, string> = Object.create(null);
  for (const [name, text] of pairs) bag[name] = text;
  return Object.freeze(bag);
}

/** The bag of an entry without headers. */
export const NO_HEADERS: Headers = headerBag([]);

function checkHeaders(headers: AppendOptions['headers']): Headers {
  if (headers === undefined) return NO_HEADERS;
  if (typeof headers !== 'object' || headers === null || Array.isArray(headers)) {
    throw new BrokerError(
      'HEADERS_INVALID',
      `headers are an object of strings, not ${describe(headers)}`,
    );
  }
  const pairs = Object.entries(headers);
  for (const [name, text] of pairs) {
    if (typeof text !== 'string' || !text.isWellFormed() || !name.isWellFormed()) {
      throw new BrokerError(
        'HEADERS_INVALID',
        `header ${describe(name)} is well-formed text, not ${describe(text)}`,
      );
    }
  }
  return headerBag(pairs);
}

function checkKey(key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || key === '' || key.length > MAX_KEY_LENGTH || !key.isWellFormed()) {
    throw new BrokerError(
      'OPTION_INVALID',
      `idempotencyKey is 1 to ${MAX_KEY_LENGTH} characters, not ${describe(key)}`,
    );
  }
  return key;
}
