import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { BrokerError } from './errors.ts';
import { refuseOption } from './option-check.ts';

/** A key of a key ring. */
export interface SealKey {
  /** Names the key in what it seals: 1 to 32 letters, digits, `_` and `-`. Never give the name to another key. */
  readonly id: string;
  /** 32 random bytes, or their base64 or hex. No passphrase. */
  readonly key: Uint8Array | string;
}

/**
 * The keys of a sealed broker, or what answers them: it is asked with each append and with each read, and what it answers
 * is looked at again only where that is another list. It answers at once: keep what a key service said.
 */
export type SealKeys = readonly SealKey[] | (() => readonly SealKey[]);

/** A key as it is used. */
export interface SealingKey {
  readonly id: string;
  readonly cipher: KeyObject;
  /** Makes nonces of what is sealed, for appends that must come out the same when they are repeated. */
  readonly nonces: KeyObject;
}

/** Keys as they are used: the first seals, all open. */
export interface KeyRing {
  readonly first: SealingKey;
  readonly all: readonly SealingKey[];
  of(id: string): SealingKey | undefined;
}

/** Answers the keys of the moment. Throws `UNAVAILABLE` where they cannot be had. */
export type KeySource = () => KeyRing;

const ID = /^[A-Za-z0-9_-]{1,32}$/;
const KEY_BYTES = 32;

/** Makes the source of the keys. Throws `OPTION_INVALID` for a list that is none; a function is not asked yet. */
export function keySource(keys: SealKeys): KeySource {
  if (typeof keys !== 'function') {
    const ring = keyRing(keys);
    return () => ring;
  }
  let known: { readonly given: readonly SealKey[]; readonly ring: KeyRing } | undefined;
  return () => {
    try {
      const given = keys();
      if (known?.given !== given) known = { given, ring: keyRing(given) };
      return known.ring;
    } catch (error) {
      throw new BrokerError('UNAVAILABLE', 'the keys of the sealed broker cannot be had', {
        cause: error,
      });
    }
  };
}

/** Checks the keys. Throws `OPTION_INVALID`; no key is ever part of the sentence. */
function keyRing(keys: readonly SealKey[]): KeyRing {
  if (!Array.isArray(keys) || keys.length === 0)
    refuseOption('keys', 'a list of at least one { id, key }', keys);
  const all = keys.map(sealingKey);
  const [first] = all as [SealingKey, ...SealingKey[]];
  const byId = new Map(all.map((key) => [key.id, key]));
  if (byId.size !== all.length) refuseOption('keys', 'a list in which no id is used twice', keys);
  return { first, all, of: (id) => byId.get(id) };
}

function sealingKey(given: SealKey, index: number): SealingKey {
  const { id, key } = given ?? {};
  if (typeof id !== 'string' || !ID.test(id))
    refuseOption(`keys[${index}].id`, '1 to 32 letters, digits, _ and -', id);
  const bytes = keyBytes(key);
  if (bytes?.length !== KEY_BYTES) {
    // Never described: what is no key by a character or two is nearly one.
    refuseOption(`keys[${index}].key`, '32 bytes, or their base64 or hex', typeof key);
  }
  const nonces = createHmac('sha256', bytes).update('brokerfeed seal nonces').digest();
  return { id, cipher: createSecretKey(bytes), nonces: createSecretKey(nonces) };
}

function keyBytes(key: unknown): Buffer | undefined {
  if (key instanceof Uint8Array) return Buffer.from(key);
  if (typeof key !== 'string') return undefined;
  if (/^[0-9a-f]{64}$/i.test(key)) return Buffer.from(key, 'hex');
  return /^[A-Za-z0-9+/_-]{43}=?$/.test(key) ? Buffer.from(key, 'base64') : undefined;
}
