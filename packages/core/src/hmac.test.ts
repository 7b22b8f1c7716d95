import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Hmac } from './hmac.ts';

function digestOf(hmac: Hmac, message: Uint8Array): string {
  const bytes = Buffer.alloc(Hmac.HEAD_BYTES + message.length);
  hmac.putHead(bytes);
  bytes.set(message, Hmac.HEAD_BYTES);
  return Buffer.from(hmac.digest(bytes), 'latin1').toString('hex');
}

function reference(secret: Uint8Array, message: Uint8Array): string {
  return createHmac('sha256', secret).update(message).digest('hex');
}

const bytes = fc.uint8Array({ maxLength: 200 });

test('a digest is the one that Node makes, for secrets and messages of any length', () => {
  fc.assert(
    fc.property(bytes, fc.array(bytes, { minLength: 1, maxLength: 3 }), (secret, messages) => {
      const hmac = new Hmac(secret);
      // One after another under one key: nothing of one digest is left in the next.
      for (const message of messages)
        expect(digestOf(hmac, message)).toBe(reference(secret, message));
    }),
    { numRuns: 500 },
  );
});

test.each([0, 1, 32, 63, 64, 65, 128, 1000])(
  'a secret of %i bytes is used as it should',
  (length) => {
    const secret = new Uint8Array(length).fill(0xa7);
    const message = Buffer.from('what is signed');
    expect(digestOf(new Hmac(secret), message)).toBe(reference(secret, message));
  },
);

test('the secret that was given may be overwritten', () => {
  const secret = Buffer.alloc(40, 1);
  const hmac = new Hmac(secret);
  secret.fill(2);
  expect(digestOf(hmac, Buffer.from('a'))).toBe(reference(Buffer.alloc(40, 1), Buffer.from('a')));
});
