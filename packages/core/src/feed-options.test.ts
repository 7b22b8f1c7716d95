import { describe, expect, test } from 'vitest';
import { type BrokerError, Feed, type FeedOptions, isBrokerError } from './index.ts';
import { memoryBroker } from './memory/index.ts';

const SECRET = 'a secret of sixteen bytes and more';

/** What a caller without types may pass. */
function refusal(options: unknown): BrokerError {
  try {
    new Feed(memoryBroker(), options as FeedOptions);
  } catch (error) {
    if (isBrokerError(error, 'OPTION_INVALID')) return error;
    throw error;
  }
  return expect.fail('the options were taken');
}

describe('an option that is refused is named', () => {
  const schema = { '~standard': { version: 1, vendor: 'test', validate: () => ({ value: 1 }) } };

  test.each<[string, unknown]>([
    ['options', null],
    ['options', 'from'],
    ['from', { from: 'newest' }],
    ['from', { from: 'toString' }],
    ['decode', { decode: 'xml' }],
    ['decode', { decode: 7 }],
    ['decode', { decode: 'json', schema }],
    ['schema', { schema: {} }],
    ['schema', { schema: null }],
    ['prepare', { prepare: 'x' }],
    ['filter', { filter: {} }],
    ['map', { map: [] }],
    ['onGap', { onGap: 'snapshot' }],
    ['shareGap', { shareGap: () => 'a' }],
    ['shareGap', { onGap: () => {}, shareGap: 'a' }],
    ['bind', { bind: 'user' }],
    ['secret', { secret: undefined }],
    ['secret', { secret: null }],
    ['secret', { secret: '' }],
    ['secret', { secret: 'short' }],
    ['secret', { secret: [] }],
    ['secret', { secret: [SECRET, undefined] }],
    ['secret', { secret: [SECRET, ''] }],
    ['maxIdLength', { maxIdLength: 0 }],
    ['maxIdLength', { maxIdLength: Number.NaN }],
    ['highWaterMark', { highWaterMark: 0 }],
    ['highWaterMark', { highWaterMark: '10' }],
    ['lingerMs', { lingerMs: -1 }],
    ['lingerMs', { lingerMs: 2 ** 31 }],
    ['control', { control: 'yes' }],
    ['control', { control: null }],
    ['control.idleMs', { control: { idleMs: 0 } }],
    ['control.idleMs', { control: { idleMs: Number.POSITIVE_INFINITY } }],
    ['onEntryError', { onEntryError: 'throw' }],
    ['retryDelaysMs', { retryDelaysMs: 250 }],
    ['retryDelaysMs', { retryDelaysMs: [250, -1] }],
  ])('%s in %j', (name, options) => {
    expect(refusal(options).message).toMatch(new RegExp(`^${name.replace('.', '\\.')} is `));
  });
});

test('a secret is not repeated in its refusal', () => {
  expect(refusal({ secret: 'hunter2' }).message).not.toContain('hunter2');
});

test('a feed without a secret says so once in production, and without one given is unsigned', () => {
  const warnings: string[] = [];
  const note = (_: object, event: string): void => {
    warnings.push(event);
  };
  const logger = { debug: note, info: note, warn: note, error: note };
  const before = process.env.NODE_ENV;
  try {
    process.env.NODE_ENV = 'production';
    const broker = memoryBroker({ logger });
    new Feed(broker, { secret: SECRET });
    expect(warnings).toEqual([]);
    new Feed(broker);
    new Feed(broker);
    expect(warnings).toEqual(['brokerfeed.feed.unsigned']);
  } finally {
    process.env.NODE_ENV = before;
  }
});
