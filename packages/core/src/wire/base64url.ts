const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const VALUES = new Map([...ALPHABET].map((character, value) => [character, value]));

/** Encodes bytes in base64url without padding. (Browsers have no `Buffer`, and `btoa` takes no bytes.) */
export function encodeBase64url(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const group =
      ((bytes[at] as number) << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const characters = Math.min(bytes.length - at, 3) + 1;
    for (let k = 0; k < characters; k += 1) text += ALPHABET[(group >> (18 - 6 * k)) & 63];
  }
  return text;
}

/** Decodes base64url without padding, or answers undefined for any text that {@link encodeBase64url} does not write. */
export function decodeBase64url(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let group = 0;
  let bits = 0;
  let at = 0;
  for (const character of text) {
    const value = VALUES.get(character);
    if (value === undefined) return undefined;
    group = (group << 6) | value;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = (group >> bits) & 0xff;
      group &= (1 << bits) - 1;
    }
  }
  return bits >= 6 || group !== 0 ? undefined : bytes;
}
