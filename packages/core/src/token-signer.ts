import { createHash, timingSafeEqual } from 'node:crypto';
import { Hmac } from './hmac.ts';
import { refuseOption } from './option-check.ts';
import {
  MAC_BYTES,
  MAX_PAYLOAD_BYTES,
  packToken,
  parseToken,
  printToken,
  putToken,
  type TokenFields,
} from './wire/token.ts';

/** The shortest secret, in UTF-8 bytes. */
const MIN_SECRET_BYTES = 16;

/** Separates these macs from any other use of the same secret; the number is that of the layout below. */
const MAC_CONTEXT = 'brokerfeed resume token 1';

const LENGTH_BYTES = 4;

interface Key {
  readonly id: number;
  readonly hmac: Hmac;
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
  readonly #paper = new SigningPaper();

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
    if (key === undefined) return printToken(packToken(fields, undefined), undefined);
    const paper = this.#paper;
    paper.lay(key, scope);
    paper.end = putToken(paper.bytes, paper.start, fields, key.id);
    paper.sign();
    return paper.bytes.toString('base64url', paper.start, paper.end + MAC_BYTES);
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
          key.id === signature.keyId &&
          timingSafeEqual(this.#macOf(key, payload, scope), signature.mac),
      );
      if (!genuine) return { ok: false, reason: 'signature' };
    }
    return { ok: true, fields: parsed.fields };
  }

  /** Answers bytes that are good until the next signature. */
  #macOf(key: Key, payload: Uint8Array, scope: TokenScope): Uint8Array {
    const paper = this.#paper;
    paper.lay(key, scope);
    paper.bytes.set(payload, paper.start);
    paper.end = paper.start + payload.length;
    paper.sign();
    return paper.bytes.subarray(paper.end, paper.end + MAC_BYTES);
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
  return { id, hmac: new Hmac(Buffer.from(secret)) };
}

/**
 * The bytes that a signature is made of, in the order in which they are hashed: the key's head, the scope, the payload; and
 * then the mac. Head and scope stay for the tokens of the same topic that follow.
 *
 * Every part of the scope is preceded by its length, so that no two (topic, audience, payload) spell the same bytes.
 */
class SigningPaper {
  bytes: Buffer = Buffer.alloc(0);
  /** Where the payload starts and ends. */
  start = 0;
  end = 0;
  #key: Key | undefined;
  #topic = '';
  #audience: string | undefined;

  /** Lays it out up to the payload. */
  lay(key: Key, { topic, audience }: TokenScope): void {
    if (key === this.#key && topic === this.#topic && audience === this.#audience) return;
    const most =
      Hmac.HEAD_BYTES +
      MAC_CONTEXT.length +
      2 * LENGTH_BYTES +
      Buffer.byteLength(topic) +
      Buffer.byteLength(audience ?? '') +
      MAX_PAYLOAD_BYTES +
      MAC_BYTES;
    if (most > this.bytes.length) this.bytes = Buffer.alloc(most);
    key.hmac.putHead(this.bytes);
    this.start = Hmac.HEAD_BYTES;
    this.start += this.bytes.write(MAC_CONTEXT, this.start, 'latin1');
    this.#put(topic);
    this.#put(audience);
    this.#key = key;
    this.#topic = topic;
    this.#audience = audience;
  }

  /** Writes the mac behind the payload. */
  sign(): void {
    const { hmac } = this.#key as Key;
    const digest = hmac.digest(this.bytes.subarray(0, this.end));
    this.bytes.write(digest, this.end, MAC_BYTES, 'latin1');
  }

  #put(part: string | undefined): void {
    const written = this.bytes.write(part ?? '', this.start + LENGTH_BYTES);
    // An absent audience is no audience, not an empty one.
    this.bytes.writeInt32BE(part === undefined ? -1 : written, this.start);
    this.start += LENGTH_BYTES + written;
  }
}
