import {
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto';
import { refuseOption } from './option-check.ts';
import { MAC_BYTES, packToken, parseToken, type TokenFields } from './wire/token.ts';

/** The shortest secret, in UTF-8 bytes. */
const MIN_SECRET_BYTES = 16;

/** Separates these macs from any other use of the same secret; the number is that of the layout below. */
const MAC_CONTEXT = 'brokerfeed resume token 1';

interface Key {
  readonly id: number;
  readonly key: KeyObject;
}

/** Who a token is for: the resolved topic, and an optional audience within it. */
export interface TokenScope {
  readonly topic: string;
  readonly audience: string | undefined;
}

export type TokenVerdict =
  | { readonly ok: true; readonly fields: TokenFields }
  | { readonly ok: false; readonly reason: 'malformed' | 'too-long' | 'signature' };

/**
 * Signs and checks resume tokens. A token of an entry is the same on every instance and connection: neither a time nor
 * anything random goes into it, since clients drop repeats by its text.
 */
export class TokenSigner {
  /** The first signs, all verify; none where tokens are not signed. */
  readonly #keys: readonly Key[];
  readonly #maxLength: number;

  /** Throws `OPTION_INVALID` for a secret that is not text of at least 16 bytes. The text itself is not in the message. */
  constructor(secrets: readonly unknown[] | undefined, maxLength: number) {
    this.#keys = secrets?.map(toKey) ?? [];
    this.#maxLength = maxLength;
  }

  get signs(): boolean {
    return this.#keys.length > 0;
  }

  /** Makes the token of a position. */
  sign(fields: TokenFields, scope: TokenScope): string {
    const key = this.#keys[0];
    const payload = packToken(fields, key?.id);
    const bytes = key === undefined ? payload : Buffer.concat([payload, mac(key, payload, scope)]);
    return Buffer.from(bytes).toString('base64url');
  }

  /** Checks a token that a peer sent: type and length, then the mac, then what it says. */
  verify(token: unknown, scope: TokenScope): TokenVerdict {
    if (typeof token !== 'string') return { ok: false, reason: 'malformed' };
    if (token.length > this.#maxLength) return { ok: false, reason: 'too-long' };
    const parsed = parseToken(token);
    if (parsed === undefined) return { ok: false, reason: 'malformed' };
    const { payload, signature } = parsed;
    if ((signature !== undefined) !== this.signs) return { ok: false, reason: 'signature' };
    if (signature !== undefined) {
      const genuine = this.#keys.some(
        (key) =>
          key.id === signature.keyId && timingSafeEqual(mac(key, payload, scope), signature.mac),
      );
      if (!genuine) return { ok: false, reason: 'signature' };
    }
    return { ok: true, fields: parsed.fields };
  }
}

function toKey(secret: unknown): Key {
  if (typeof secret !== 'string' || Buffer.byteLength(secret) < MIN_SECRET_BYTES) {
    const found =
      typeof secret === 'string' ? `a text of ${Buffer.byteLength(secret)} bytes` : secret;
    return refuseOption(
      'secret',
      `text of at least ${MIN_SECRET_BYTES} bytes, or an array of such texts`,
      found,
    );
  }
  const id = createHash('sha256')
    .update('brokerfeed key id\0')
    .update(secret)
    .digest()[0] as number;
  return { id, key: createSecretKey(secret, 'utf8') };
}

function mac(key: Key, payload: Uint8Array, scope: TokenScope): Buffer {
  const message = Buffer.concat([scopeBytes(scope), payload]);
  return createHmac('sha256', key.key).update(message).digest().subarray(0, MAC_BYTES);
}

const bytesOfScopes = new WeakMap<TokenScope, Buffer>();

/**
 * What is signed before the payload. Every part is preceded by its length, so that no two (topic, audience, payload) spell
 * the same bytes. Kept for a scope: one update of the hash is a third cheaper than five.
 */
function scopeBytes(scope: TokenScope): Buffer {
  let bytes = bytesOfScopes.get(scope);
  if (bytes === undefined) {
    const parts = [scope.topic, scope.audience].flatMap((part) => {
      const length = Buffer.alloc(4);
      // An absent audience is no audience, not an empty one.
      length.writeInt32BE(part === undefined ? -1 : Buffer.byteLength(part));
      return [length, Buffer.from(part ?? '')];
    });
    bytes = Buffer.concat([Buffer.from(MAC_CONTEXT), ...parts]);
    bytesOfScopes.set(scope, bytes);
  }
  return bytes;
}
