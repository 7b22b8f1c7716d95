import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type TokenScope, TokenSigner } from './token-signer.ts';
import { packToken, printToken, type TokenFields } from './wire/token.ts';

const OLD = 'the old secret of a feed';
const NEW = 'the new secret of a feed';
const MAX = 512;
const SCOPE: TokenScope = { topic: 'orders', audience: undefined };
const FIELDS: TokenFields = {
  kind: 'entry',
  epoch: 'AbCdEf-_0123',
  id: '1732999999999-12',
  ordinal: 41,
  index: 0,
};

function signer(...secrets: string[]): TokenSigner {
  return new TokenSigner(secrets.length === 0 ? undefined : secrets, MAX);
}

test('a token is the same on every instance', () => {
  expect(signer(NEW).sign(FIELDS, SCOPE)).toBe(signer(NEW, OLD).sign(FIELDS, SCOPE));
  expect(signer(NEW).sign(FIELDS, SCOPE)).not.toBe(signer(OLD).sign(FIELDS, SCOPE));
});

test('of a list of secrets the first signs and all verify', () => {
  const rotated = signer(NEW, OLD);
  const old = signer(OLD).sign(FIELDS, SCOPE);
  expect(rotated.verify(old, SCOPE)).toEqual({ ok: true, fields: FIELDS });
  const fresh = rotated.sign(FIELDS, SCOPE);
  expect(signer(NEW).verify(fresh, SCOPE)).toEqual({ ok: true, fields: FIELDS });
  expect(signer(OLD).verify(fresh, SCOPE)).toEqual({ ok: false, reason: 'signature' });
  expect(signer(NEW).verify(old, SCOPE)).toEqual({ ok: false, reason: 'signature' });
});

test('secrets whose key ids are the same are told apart', () => {
  const idOf = (secret: string): number =>
    createHash('sha256').update('brokerfeed key id\0').update(secret).digest()[0] as number;
  let other = '';
  for (let n = 0; idOf(other) !== idOf(OLD); n += 1) other = `another secret, number ${n}`;
  const token = signer(other).sign(FIELDS, SCOPE);
  expect(signer(OLD, other).verify(token, SCOPE).ok).toBe(true);
  expect(signer(OLD).verify(token, SCOPE)).toEqual({ ok: false, reason: 'signature' });
});

test.each<[string, TokenScope, TokenScope]>([
  ['topic', SCOPE, { ...SCOPE, topic: 'order' }],
  ['audience', { ...SCOPE, audience: 'anna' }, { ...SCOPE, audience: 'bert' }],
  ['audience, one of them empty', { ...SCOPE, audience: '' }, SCOPE],
  ['split of topic and audience', { topic: 'a', audience: 'bc' }, { topic: 'ab', audience: 'c' }],
  ['split, with one part empty', { topic: 'ab', audience: '' }, { topic: 'a', audience: 'b' }],
  ['spelling of the topic', { ...SCOPE, topic: 'é' }, { ...SCOPE, topic: 'e\u0301' }],
])('a token is refused under another %s', (_, one, other) => {
  const { sign, verify } = bound(signer(NEW));
  expect(verify(sign(FIELDS, one), one).ok).toBe(true);
  expect(verify(sign(FIELDS, one), other)).toEqual({ ok: false, reason: 'signature' });
  expect(verify(sign(FIELDS, other), one)).toEqual({ ok: false, reason: 'signature' });
});

test('no two scopes share a token', () => {
  const part = fc.string({ maxLength: 4, unit: fc.constantFrom('a', 'b', '\0', 'é') });
  const scope = fc.record({ topic: part, audience: fc.option(part, { nil: undefined }) });
  const { sign } = bound(signer(NEW));
  fc.assert(
    fc.property(scope, scope, (one, other) => {
      const same = one.topic === other.topic && one.audience === other.audience;
      expect(sign(FIELDS, one) === sign(FIELDS, other)).toBe(same);
    }),
    { numRuns: 500 },
  );
});

test('an unsigned token is refused under a secret, and a signed one without', () => {
  const unsigned = signer().sign(FIELDS, SCOPE);
  const signed = signer(NEW).sign(FIELDS, SCOPE);
  expect(signer().verify(unsigned, SCOPE)).toEqual({ ok: true, fields: FIELDS });
  expect(signer(NEW).verify(unsigned, SCOPE)).toEqual({ ok: false, reason: 'signature' });
  expect(signer().verify(signed, SCOPE)).toEqual({ ok: false, reason: 'signature' });
});

test('a mac from elsewhere, or of zeros, is refused', () => {
  const payload = packToken(FIELDS, keyIdOf(signer(NEW).sign(FIELDS, SCOPE)));
  for (const fill of [0, 255]) {
    const forged = printToken(payload, new Uint8Array(12).fill(fill));
    expect(signer(NEW).verify(forged, SCOPE)).toEqual({ ok: false, reason: 'signature' });
  }
});

test('every change of one character is refused', () => {
  const checking = signer(NEW, OLD);
  const token = checking.sign(FIELDS, SCOPE);
  const characters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=';
  for (let at = 0; at < token.length; at += 1) {
    for (const character of characters) {
      if (character === token[at]) continue;
      const changed = token.slice(0, at) + character + token.slice(at + 1);
      expect(checking.verify(changed, SCOPE).ok).toBe(false);
    }
  }
  for (let length = 0; length < token.length; length += 1) {
    expect(checking.verify(token.slice(0, length), SCOPE).ok).toBe(false);
  }
});

test('the type is looked at first, then the length, then the mac', () => {
  const checking = new TokenSigner([NEW], 60);
  for (const odd of [1, true, {}, ['a'], Symbol('a'), new String('a')]) {
    expect(checking.verify(odd, SCOPE)).toEqual({ ok: false, reason: 'malformed' });
  }
  expect(checking.verify('!'.repeat(61), SCOPE)).toEqual({ ok: false, reason: 'too-long' });
  expect(checking.verify('!'.repeat(60), SCOPE)).toEqual({ ok: false, reason: 'malformed' });
  const token = checking.sign(FIELDS, SCOPE);
  expect(new TokenSigner([NEW], token.length).verify(token, SCOPE).ok).toBe(true);
  expect(new TokenSigner([NEW], token.length - 1).verify(token, SCOPE)).toEqual({
    ok: false,
    reason: 'too-long',
  });
});

test.each([
  ['undefined', undefined],
  ['empty', ''],
  ['a byte short', 'fifteen bytes..'],
  ['no text', 1234567890123456],
])('a secret that is %s is refused, and not repeated', (_, secret) => {
  expect(() => new TokenSigner([OLD, secret], MAX)).toThrow(
    expect.objectContaining({
      code: 'OPTION_INVALID',
      message: expect.stringMatching(/^secret is /),
    }),
  );
  if (typeof secret === 'string' && secret !== '') {
    expect(() => new TokenSigner([secret], MAX)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining(secret) }),
    );
  }
});

test('bytes of a secret are counted, not characters', () => {
  expect(() => new TokenSigner(['éééééééé'], MAX)).not.toThrow();
});

function bound(target: TokenSigner): Pick<TokenSigner, 'sign' | 'verify'> {
  return {
    sign: (fields, scope) => target.sign(fields, scope),
    verify: (token, scope) => target.verify(token, scope),
  };
}

function keyIdOf(token: string): number {
  return Buffer.from(token, 'base64url')[1] as number;
}
