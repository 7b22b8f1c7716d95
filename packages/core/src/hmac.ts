import { hash } from 'node:crypto';

/** Bytes that SHA-256 takes at a time. */
const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/**
 * HMAC-SHA256 under one key, as two plain hashes: on short messages `createHmac` costs several times as much, most of it
 * for an object that the collector must finalize. A message is laid out by the caller, behind {@link HEAD_BYTES} of room
 * which {@link putHead} fills, so that nothing is copied for a digest.
 *
 * @see {@link https://www.rfc-editor.org/rfc/rfc2104#section-2}
 */
export class Hmac {
  /** Room before a message. */
  static readonly HEAD_BYTES: number = BLOCK_BYTES;

  readonly #head: Uint8Array;
  /** The outer hash's block, and room for the inner digest. */
  readonly #outer: Buffer;

  constructor(secret: Uint8Array) {
    const key = Buffer.alloc(BLOCK_BYTES);
    key.set(secret.length > BLOCK_BYTES ? hash('sha256', secret, 'buffer') : secret);
    this.#head = key.map((byte) => byte ^ INNER_PAD);
    this.#outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);
    this.#outer.set(key.map((byte) => byte ^ OUTER_PAD));
  }

  /** Fills the room before a message. It may stay for further messages under the same key. */
  putHead(bytes: Uint8Array): void {
    bytes.set(this.#head);
  }

  /** Makes the digest of a message with its head before it: text of one character for each byte. */
  digest(headAndMessage: Uint8Array): string {
    // Texts of bytes: buffers would cost more than the hashing.
    this.#outer.write(hash('sha256', headAndMessage, 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', this.#outer, 'binary');
  }
}
