import { createCipheriv, createDecipheriv, createHmac, randomFillSync } from 'node:crypto';
import type { KeyRing, SealingKey } from './seal-keys.ts';

/*
 * A sealed text is `bfs1.<key id>.<base64url of nonce, ciphertext and tag>`, by AES-256-GCM. What it is bound to (the
 * associated data) is its scope: what it is for, the topic and, for the headers of a commit, all values of that commit. So
 * nothing sealed can be moved to another topic, and no commit be put together from parts of others. There is no window of
 * time: a log is read again by design.
 */

/** What a sealed text is bound to. */
export interface SealScope {
  readonly purpose: 'value' | 'headers' | 'announcement';
  readonly topic: string;
  /** Stands for the values of the commit. */
  readonly commit?: string;
}

/**
 * Why a value does not open.
 *
 * - `unsealed`: it is plain text, and that is not accepted.
 * - `format`: it begins like a sealed one and is none, or lacks the headers that were sealed with it.
 * - `kid`: it was sealed with a key that is not in the ring.
 * - `open`: it was sealed for another place, or with another key of that name, or was changed since.
 */
export type SealRefusalReason = 'unsealed' | 'format' | 'kid' | 'open';

/** A value that does not open. The sentence has nothing of it. */
export class SealRefusal extends Error {
  override readonly name = 'SealRefusal';
  readonly reason: SealRefusalReason;

  constructor(reason: SealRefusalReason) {
    super(SENTENCES[reason]);
    this.reason = reason;
  }
}

const SENTENCES: Record<SealRefusalReason, string> = {
  unsealed: 'a value is not sealed',
  format: 'a value begins like a sealed one, and is none',
  kid: 'a value was sealed with a key that is not in the ring',
  open: 'a value was sealed for another place, or was changed since',
};

const PREFIX = 'bfs1.';
const SEALED = /^bfs1\.([A-Za-z0-9_-]{1,32})\.([A-Za-z0-9_-]+)$/;
const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Tells whether a text claims to be sealed. */
export function isSealed(text: string): boolean {
  return text.startsWith(PREFIX);
}

/**
 * Seals a text. With a `repeat` the same text comes out the same, so that an append with an idempotency key can be known
 * again; without, no two are alike.
 */
export function seal(text: string, key: SealingKey, scope: SealScope, repeat?: string): string {
  const plain = Buffer.from(text);
  const bound = boundTo(scope, key.id);
  const nonce =
    repeat === undefined
      ? randomFillSync(Buffer.allocUnsafe(NONCE_BYTES))
      : nonceOf(key, bound, repeat, plain);
  const cipher = createCipheriv(ALGORITHM, key.cipher, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(bound);
  const body = [nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()];
  return `${PREFIX}${key.id}.${Buffer.concat(body).toString('base64url')}`;
}

/** Opens a sealed text. Throws a {@link SealRefusal}. */
export function openSealed(text: string, keys: KeyRing, scope: SealScope): string {
  const [, id, encoded] = SEALED.exec(text) ?? [];
  const body = Buffer.from(encoded ?? '', 'base64url');
  if (id === undefined || body.length < NONCE_BYTES + TAG_BYTES) throw new SealRefusal('format');
  const key = keys.of(id);
  if (key === undefined) throw new SealRefusal('kid');
  const nonce = body.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(ALGORITHM, key.cipher, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(boundTo(scope, id));
  decipher.setAuthTag(body.subarray(-TAG_BYTES));
  try {
    const plain = decipher.update(body.subarray(NONCE_BYTES, -TAG_BYTES));
    decipher.final();
    return plain.toString();
  } catch {
    // Nothing is known of the cause, and what was deciphered so far is nobody's.
    throw new SealRefusal('open');
  }
}

function boundTo({ purpose, topic, commit = '' }: SealScope, id: string): Buffer {
  // As JSON, so that no two scopes are the same text.
  return Buffer.from(JSON.stringify(['brokerfeed seal 1', purpose, id, topic, commit]));
}

/** Two texts get the same nonce only if they are the same in the same place: then what comes out is the same too. */
function nonceOf(key: SealingKey, bound: Buffer, repeat: string, plain: Buffer): Buffer {
  const place = JSON.stringify([bound.toString(), repeat]);
  return createHmac('sha256', key.nonces)
    .update(`${Buffer.byteLength(place)} ${place}`)
    .update(plain)
    .digest()
    .subarray(0, NONCE_BYTES);
}
