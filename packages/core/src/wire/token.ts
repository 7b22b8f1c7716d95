import { decodeBase64url, encodeBase64url } from './base64url.ts';

/*
 * The resume token, as PROTOCOL.md describes it. Everything is packed in bytes:
 *
 *   version and flags (1) · key id (1, signed tokens only) · epoch (9) · id (1 or 2 varints) · ordinal (varint)
 *   · index (varint) · mac (12, signed tokens only)
 */

/** What a token stands for. */
export type TokenKind =
  /** The last entry of a commit: resumes after it. */
  | 'entry'
  /** An entry inside a commit: resumes before that commit, which is received again. */
  | 'inside'
  /** No entry: a bare position, such as that of a control frame or of the last value of a snapshot. */
  | 'position'
  /** A value of a snapshot that is not finished: resuming with it runs the snapshot again. */
  | 'snapshot';

/** What a resume token says. */
export interface TokenFields {
  readonly kind: TokenKind;
  /** The incarnation of the log: twelve characters of base64url. */
  readonly epoch: string;
  /** The broker's name of the place to resume from: one decimal number, or two joined by `-`. */
  readonly id: string;
  /** The count of commits before the place to resume from. */
  readonly ordinal: number;
  /**
   * For `entry` and `inside`, the entry's place in its commit; for a value of a snapshot, one more than that of the value
   * before it; for a control frame any number; else 0.
   */
  readonly index: number;
}

/** A token taken apart. Its fields mean nothing until the mac was checked. */
export interface ParsedToken {
  readonly fields: TokenFields;
  /** The signed part. */
  readonly payload: Uint8Array;
  /** Absent on an unsigned token. */
  readonly signature: { readonly keyId: number; readonly mac: Uint8Array } | undefined;
}

/** The token version that this library writes and reads. */
export const TOKEN_VERSION = 1;

/** Bytes of HMAC-SHA256 that a signed token carries. */
export const MAC_BYTES = 12;

const KINDS: readonly TokenKind[] = ['entry', 'inside', 'position', 'snapshot'];
const KIND_MASK = 0b0011;
const SIGNED = 0b0100;
/** The id is two numbers (`ms-seq`). An id of one number that equals the ordinal is left out. */
const TWO_PART_ID = 0b1000;
const VERSION_SHIFT = 4;
const EPOCH_BYTES = 9;
const MAX_VARINT_BYTES = 10;

/** Bytes of the signed part of a token, at most. */
export const MAX_PAYLOAD_BYTES: number = 2 + EPOCH_BYTES + 4 * MAX_VARINT_BYTES;

/** Packs the signed part of a token. `keyId` is that of the signing secret, or undefined for an unsigned token. */
export function packToken(fields: TokenFields, keyId: number | undefined): Uint8Array {
  const bytes = new Uint8Array(MAX_PAYLOAD_BYTES);
  return bytes.subarray(0, putToken(bytes, 0, fields, keyId));
}

/** Packs the signed part of a token into `bytes`, from `start` on. Answers where it ends, `MAX_PAYLOAD_BYTES` later at most. */
export function putToken(
  bytes: Uint8Array,
  start: number,
  fields: TokenFields,
  keyId: number | undefined,
): number {
  const { id, ordinal } = fields;
  const dash = id.indexOf('-');
  let at = start;
  bytes[at++] =
    (TOKEN_VERSION << VERSION_SHIFT) |
    KINDS.indexOf(fields.kind) |
    (keyId === undefined ? 0 : SIGNED) |
    (dash < 0 ? 0 : TWO_PART_ID);
  if (keyId !== undefined) bytes[at++] = keyId;
  bytes.set(epochBytes(fields.epoch), at);
  at += EPOCH_BYTES;
  if (dash < 0) {
    // Its distance from the ordinal, so that a broker whose id is the ordinal pays one byte.
    const number = integer(id, 0, id.length);
    at = putVarint(bytes, at, number === ordinal ? 0 : BigInt(number) ^ BigInt(ordinal));
  } else {
    at = putVarint(bytes, at, integer(id, 0, dash));
    at = putVarint(bytes, at, integer(id, dash + 1, id.length));
  }
  at = putVarint(bytes, at, ordinal);
  return putVarint(bytes, at, fields.index);
}

/** Prints a token. */
export function printToken(payload: Uint8Array, mac: Uint8Array | undefined): string {
  if (mac === undefined) return encodeBase64url(payload);
  const whole = new Uint8Array(payload.length + mac.length);
  whole.set(payload);
  whole.set(mac, payload.length);
  return encodeBase64url(whole);
}

/**
 * Takes a token apart, or answers undefined where the text is not one of this version. Every token has exactly one text:
 * a text that differs in any character is another token or none.
 */
export function parseToken(text: string): ParsedToken | undefined {
  const bytes = decodeBase64url(text);
  const head = bytes?.[0];
  if (bytes === undefined || head === undefined || head >> VERSION_SHIFT !== TOKEN_VERSION)
    return undefined;
  const signed = (head & SIGNED) !== 0;
  const payloadLength = bytes.length - (signed ? MAC_BYTES : 0);
  const fields = unpack(bytes.subarray(0, Math.max(payloadLength, 0)), head, signed ? 2 : 1);
  if (fields === undefined) return undefined;
  return {
    fields,
    payload: bytes.subarray(0, payloadLength),
    signature: signed
      ? { keyId: bytes[1] as number, mac: bytes.subarray(payloadLength) }
      : undefined,
  };
}

/** The address of the entry that came with a token, by which repeats are dropped; undefined where there was no entry. */
export function entryAddress(
  fields: TokenFields,
): { readonly generation: number; readonly index: number } | undefined {
  switch (fields.kind) {
    case 'entry':
      return { generation: fields.ordinal, index: fields.index };
    case 'inside':
      return { generation: fields.ordinal + 1, index: fields.index };
    case 'position':
    case 'snapshot':
      return undefined;
    default:
      return fields.kind satisfies never;
  }
}

function unpack(bytes: Uint8Array, head: number, start: number): TokenFields | undefined {
  const reader = new VarintReader(bytes, start + EPOCH_BYTES);
  const first = reader.next();
  const second = (head & TWO_PART_ID) === 0 ? undefined : reader.next();
  const ordinal = reader.next();
  const index = reader.next();
  if (!reader.atEnd || ordinal > Number.MAX_SAFE_INTEGER || index > Number.MAX_SAFE_INTEGER)
    return undefined;
  return {
    kind: KINDS[head & KIND_MASK] as TokenKind,
    epoch: encodeBase64url(bytes.subarray(start, start + EPOCH_BYTES)),
    id: second === undefined ? `${first ^ ordinal}` : `${first}-${second}`,
    ordinal: Number(ordinal),
    index: Number(index),
  };
}

/** Up to so many digits, every number is a safe integer. */
const MAX_EXACT_DIGITS = 15;
const ZERO = 0x30;
/** The largest number that shifts by bits can take. */
const MAX_INT = 0x7fffffff;

/** The epoch packed last: a topic keeps its own for a long time. */
let lastEpoch: { readonly text: string; readonly bytes: Uint8Array } | undefined;

function epochBytes(text: string): Uint8Array {
  if (lastEpoch?.text !== text) {
    const bytes = decodeBase64url(text);
    if (bytes?.length !== EPOCH_BYTES) {
      throw new RangeError('an epoch is twelve characters of base64url');
    }
    lastEpoch = { text, bytes };
  }
  return lastEpoch.bytes;
}

/** Reads decimal digits: as a number where that is exact, since it is packed several times faster. */
function integer(text: string, start: number, end: number): number | bigint {
  if (end - start > MAX_EXACT_DIGITS) return BigInt(text.slice(start, end));
  let number = 0;
  for (let at = start; at < end; at += 1) {
    const digit = text.charCodeAt(at) - ZERO;
    if (digit < 0 || digit > 9) throw new SyntaxError('an id is one or two decimal numbers');
    number = number * 10 + digit;
  }
  return number;
}

function putVarint(bytes: Uint8Array, start: number, value: number | bigint): number {
  let at = start;
  let rest = value;
  if (typeof rest === 'bigint') {
    for (rest = BigInt.asUintN(64, rest); rest > 0x7fn; rest >>= 7n) {
      bytes[at++] = Number(rest & 0x7fn) | 0x80;
    }
    rest = Number(rest);
  }
  for (; rest > MAX_INT; rest = Math.floor(rest / 0x80)) bytes[at++] = (rest % 0x80) | 0x80;
  for (; rest > 0x7f; rest >>= 7) bytes[at++] = (rest & 0x7f) | 0x80;
  bytes[at++] = rest;
  return at;
}

/** Reads varints of up to 64 bits. Anything but the shortest spelling, or a read past the end, leaves it never at the end. */
class VarintReader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  next(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) break;
      this.#at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) {
        if ((byte === 0 && shift > 0n) || value >= 1n << 64n) break;
        return value;
      }
    }
    this.#at = Number.POSITIVE_INFINITY;
    return 0n;
  }
}
