const FIN_TEXT = 0x81;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MAX_LENGTH_7 = 125;
const MAX_LENGTH_16 = 0xffff;

/**
 * Writes WebSocket text frames as a server sends them: whole, unmasked, uncompressed. Each has the same prefix before its
 * own payload.
 *
 * @see {@link https://www.rfc-editor.org/rfc/rfc6455#section-5.2}
 */
export function textFrames(prefix: string, texts: readonly string[]): Uint8Array {
  const head = Buffer.from(prefix);
  const lengths: number[] = [];
  let size = 0;
  for (const text of texts) {
    const length = head.length + Buffer.byteLength(text);
    lengths.push(length);
    size += headerLength(length) + length;
  }
  const bytes = Buffer.allocUnsafe(size);
  let at = 0;
  for (const [index, text] of texts.entries()) {
    const length = lengths[index] as number;
    at = putHeader(bytes, at, length);
    bytes.set(head, at);
    bytes.write(text, at + head.length);
    at += length;
  }
  return bytes;
}

/** How long such a frame is, in bytes. */
export function textFrameLength(text: string): number {
  const length = Buffer.byteLength(text);
  return headerLength(length) + length;
}

function headerLength(length: number): number {
  if (length <= MAX_LENGTH_7) return 2;
  return length <= MAX_LENGTH_16 ? 4 : 10;
}

function putHeader(bytes: Buffer, at: number, length: number): number {
  bytes[at] = FIN_TEXT;
  if (length <= MAX_LENGTH_7) {
    bytes[at + 1] = length;
    return at + 2;
  }
  if (length <= MAX_LENGTH_16) {
    bytes[at + 1] = LENGTH_16;
    return bytes.writeUInt16BE(length, at + 2);
  }
  bytes[at + 1] = LENGTH_64;
  return bytes.writeBigUInt64BE(BigInt(length), at + 2);
}
