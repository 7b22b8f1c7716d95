import { describe, expect, test } from 'vitest';
import { FeedRig, SECRET, settled, subscribe, TOPIC } from '../test/support/feed-rig.ts';
import { Feed } from './index.ts';
import { memoryBroker } from './memory/index.ts';
import { TokenSigner } from './token-signer.ts';
import { parseToken, type TokenFields } from './wire/index.ts';

const SCOPE = { topic: TOPIC, audience: undefined };

function fieldsOf(token: string | undefined): TokenFields {
  const parsed = parseToken(token ?? '');
  if (parsed === undefined) throw new Error('this is no token');
  return parsed.fields;
}

/** Signs what the feed of a rig would, of a place that it never handed out. */
function forge(change: Partial<TokenFields>, of: TokenFields, secret = SECRET): string {
  return new TokenSigner([secret], 512).sign({ ...of, ...change }, SCOPE);
}

describe('a client that comes back', () => {
  test('to another instance gets what it missed, then what is new', async () => {
    const rig = new FeedRig({ from: 'earliest' });
    const peer = memoryBroker({ store: rig.store });
    const other = new Feed(peer, { secret: SECRET, lingerMs: 0 });
    await rig.appendEach(1, 2);
    const first = await rig.open();
    const frames = await first.take(2);
    first.reader.close();
    await rig.appendEach(3, 4);
    const second = await subscribe(other, frames[1]?.token);
    const resumed = await second.take(2);
    await rig.append(5);
    const rest = await second.take(1);
    expect([...frames, ...resumed, ...rest].map((frame) => frame.value)).toEqual([1, 2, 3, 4, 5]);
  });

  test('after an entry inside a commit gets that commit again, whole', async () => {
    const rig = new FeedRig();
    const first = await rig.open();
    await rig.append('a');
    await rig.append('b0', 'b1', 'b2');
    await rig.append('c');
    const frames = await first.take(5);
    expect(new Set(frames.map((frame) => frame.token)).size).toBe(5);
    const restsOf = async (token: string | undefined): Promise<readonly unknown[]> => {
      const { values, reader } = await rig.open(token);
      const rest = await values(1);
      const all = rest[0] === 'c' ? rest : [...rest, ...(await values(3))];
      reader.close();
      return all;
    };
    for (const index of [0, 1, 2]) {
      expect(await restsOf(frames[index]?.token)).toEqual(['b0', 'b1', 'b2', 'c']);
    }
    expect(await restsOf(frames[3]?.token)).toEqual(['c']);
  });

  test('gets the tokens that it had, from ring and log alike', async () => {
    const rig = new FeedRig({ from: 'earliest', highWaterMark: 400 });
    const live = await rig.open();
    for (let n = 0; n < 150; n += 1) await rig.append(n, -n);
    const tokens = (await live.take(300)).map((frame) => frame.token);
    const fromLog = memoryBroker({ store: rig.store });
    const other = new Feed(fromLog, { from: 'earliest', secret: SECRET, highWaterMark: 1 });
    expect((await (await subscribe(other)).take(300)).map((frame) => frame.token)).toEqual(tokens);
    const resumed = await rig.open(tokens[99]);
    expect((await resumed.take(200)).map((frame) => frame.token)).toEqual(tokens.slice(100));
    expect(new Set(tokens).size).toBe(300);
  });

  test.each([undefined, null, ''])('with %j begins afresh', async (token) => {
    const rig = new FeedRig();
    await rig.append('before');
    const { values } = await rig.open(token);
    await rig.append('after');
    expect(await values(1)).toEqual(['after']);
    expect(rig.meter.of('brokerfeed.feed.resumes fresh')).toBe(1);
  });

  test('and whoever opened first misses nothing before the first read', async () => {
    const rig = new FeedRig();
    const { values } = await rig.open();
    await rig.append('a');
    await settled();
    await rig.append('b');
    expect(await values(2)).toEqual(['a', 'b']);
  });

  test('after a stretch that was all skipped is not told of a gap before it', async () => {
    const rig = new FeedRig({ filter: (value) => value !== 'skip', highWaterMark: 1 });
    const { values } = await rig.open();
    await rig.append('a');
    expect(await values(1)).toEqual(['a']);
    const next = values(1);
    await rig.appendEach('skip', 'skip', 'skip');
    await settled();
    rig.log.breakReads();
    rig.trim(0);
    await rig.clock.untilWait(250);
    rig.clock.advance(250);
    await rig.append('b');
    expect(await next).toEqual(['b']);
  });
});

describe('a token that is refused', () => {
  test.each<[string, number, string, (fields: TokenFields) => unknown]>([
    ['garbage', 400, 'malformed', () => '{"seq":1}'],
    ['a number', 400, 'malformed', () => 42],
    ['an object', 400, 'malformed', (fields) => ({ ...fields })],
    ['600 characters', 400, 'too-long', () => 'A'.repeat(600)],
    [
      'one that is not signed',
      400,
      'signature',
      (f) => new TokenSigner(undefined, 512).sign(f, SCOPE),
    ],
    [
      'one of another secret',
      400,
      'signature',
      (f) => forge({}, f, 'another secret, just as long'),
    ],
    [
      'one of another secret and epoch',
      400,
      'signature',
      (f) => forge({ epoch: 'AAAAAAAAAAAA' }, f, 'another secret, just as long'),
    ],
    ['one past the end', 400, 'ahead', (f) => forge({ ordinal: 99, id: '99' }, f)],
    ['one of another epoch', 410, 'epoch', (f) => forge({ epoch: 'AAAAAAAAAAAA' }, f)],
    [
      'one of another epoch past the end',
      410,
      'epoch',
      (f) => forge({ epoch: 'AAAAAAAAAAAA', ordinal: 99 }, f),
    ],
    ['one of a trimmed place', 410, 'trimmed', (f) => forge({ ordinal: 1, id: '1' }, f)],
    ['one of another branch', 410, 'forked', (f) => forge({ ordinal: 5, id: '777' }, f)],
    ['one inside a snapshot', 410, 'snapshot', (f) => forge({ kind: 'snapshot' }, f)],
  ])('%s: %i %s', async (_, status, reason, make) => {
    const rig = new FeedRig({ from: 'earliest' });
    await rig.appendEach(1, 2, 3, 4, 5, 6);
    rig.trim(3);
    const { take, reader } = await rig.open();
    const [frame] = await take(1);
    reader.close();
    await expect(rig.open(make(fieldsOf(frame?.token)))).rejects.toMatchObject({
      name: 'FeedRefusal',
      status,
      reason,
    });
    expect(rig.meter.of(`brokerfeed.feed.resumes ${reason}`)).toBe(1);
    // Nothing stays behind, and the next client is served.
    expect(rig.tails).toBe(0);
    expect(await (await rig.open(frame?.token)).values(1)).toEqual([5]);
  });

  test('is never logged, and only a failed signature is a warning', async () => {
    const rig = new FeedRig();
    const token = forge(
      {},
      { kind: 'entry', epoch: 'AAAAAAAAAAAA', id: '1', ordinal: 1, index: 0 },
      'another secret, just as long',
    );
    await expect(rig.open(token)).rejects.toMatchObject({ reason: 'signature' });
    await expect(rig.open('not a token')).rejects.toMatchObject({ reason: 'malformed' });
    await expect(rig.open('A'.repeat(600))).rejects.toMatchObject({ reason: 'too-long' });
    expect(rig.lines.map(({ level, fields }) => [level, fields.reason])).toEqual([
      ['warn', 'signature'],
      ['debug', 'malformed'],
      ['debug', 'too-long'],
    ]);
    const text = JSON.stringify(rig.lines);
    expect(text).not.toContain(token);
    expect(text).not.toContain('not a token');
  });

  test('on another topic is refused there, by whichever instance', async () => {
    const rig = new FeedRig();
    const { take } = await rig.open();
    await rig.append(1);
    const [frame] = await take(1);
    const request = {
      topic: 'other',
      lastEventId: frame?.token,
      args: {},
      signal: AbortSignal.timeout(60_000),
    };
    await expect(rig.feed.open(request)).rejects.toMatchObject({
      reason: 'signature',
      status: 400,
    });
  });

  test('two topics whose positions are alike share no token', async () => {
    const rig = new FeedRig({ from: 'earliest' });
    await rig.log.append(TOPIC, '1');
    const [frame] = await (await rig.open()).take(1);
    const fields = fieldsOf(frame?.token);
    const there = new TokenSigner([SECRET], 512).sign(fields, {
      topic: 'other',
      audience: undefined,
    });
    expect(there).not.toBe(frame?.token);
  });
});

describe('bound tokens', () => {
  interface Args {
    readonly user: string;
  }

  test('resume for their audience alone', async () => {
    const rig = new FeedRig<Args>({ bind: ({ user }) => Promise.resolve(user), from: 'earliest' });
    await rig.appendEach(1, 2);
    const [frame] = await (await rig.open(undefined, { user: 'anna' })).take(1);
    expect(await (await rig.open(frame?.token, { user: 'anna' })).values(1)).toEqual([2]);
    await expect(rig.open(frame?.token, { user: 'bert' })).rejects.toMatchObject({
      reason: 'signature',
    });
    await expect(rig.open(frame?.token, { user: '' })).rejects.toMatchObject({
      reason: 'signature',
    });
    const unbound = rig.another<Args>({ from: 'earliest' });
    await expect(rig.open(frame?.token, { user: 'anna' }, unbound)).rejects.toMatchObject({
      reason: 'signature',
    });
  });

  test.each([undefined, 7, null, '\uD800'])(
    'an audience that is no text is refused: %j',
    async (user) => {
      const rig = new FeedRig<Args>({ bind: (args) => args.user });
      // A resolver that breaks its type.
      await expect(rig.open(undefined, { user: user as string })).rejects.toMatchObject({
        reason: 'topic',
      });
      expect(rig.tails).toBe(0);
    },
  );
});
