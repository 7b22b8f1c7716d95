import { BrokerError } from '@brokerfeed/core';
import { expect, test } from 'vitest';
import { outcomeOf, toBrokerError } from './redis-error.ts';

/** An error as ioredis makes it of an error reply. */
function reply(message: string): Error {
  return Object.assign(new Error(message), { name: 'ReplyError' });
}

test.each([
  ["READONLY You can't write against a read only replica. script: x, on @user_script:1.", 'moved'],
  ['ERR Error running script (call to f_x): @user_script:9: -READONLY You can not', 'moved'],
  ['LOADING Redis is loading the dataset in memory', 'moved'],
  ['MOVED 3999 127.0.0.1:6381', 'redirected'],
  ['ASK 3999 127.0.0.1:6381', 'redirected'],
  ['CLUSTERDOWN The cluster is down', 'busy'],
  ['TRYAGAIN Multiple keys request during rehashing of slot', 'busy'],
  ['BUSY Redis is busy running a script.', 'busy'],
  ['ERR no such key', 'refused'],
  ['OOM command not allowed', 'refused'],
])('%j is %s', (message, outcome) => {
  expect(outcomeOf(reply(message))).toBe(outcome);
});

test('an error of the client itself leaves open what was executed', () => {
  expect(outcomeOf(new Error('Connection is closed.'))).toBe('lost');
});

test.each([
  [
    'UNSUPPORTED this server does not count the entries added to a stream',
    'UNSUPPORTED',
    /needs Redis 7, Valkey/,
  ],
  ["NOPERM this user has no permissions to run the 'evalsha' command", 'UNSUPPORTED', /permission/],
  ['WRONGTYPE Operation against a key holding the wrong kind of value', 'DAMAGED', /no stream/],
  ['OOM command not allowed', 'UNAVAILABLE', /OOM/],
])('%j is told as %s', (message, code, sentence) => {
  const cause = reply(message);
  expect(toBrokerError(cause, 'a read')).toMatchObject({
    code,
    cause,
    message: expect.stringMatching(sentence),
  });
});

test('an error that is one of ours already stays as it is', () => {
  const error = new BrokerError('CLOSED', 'closed');
  expect(toBrokerError(error, 'a read')).toBe(error);
});
