/** How many slots a cluster spreads keys over. */
export const SLOTS = 16384;

const CRC16: Uint16Array = crc16Table();
const utf8 = new TextEncoder();

/**
 * Computes the slot of a key in a cluster: the CRC-16/XMODEM of its first hash tag that is not empty, or of all of it.
 */
export function keySlot(key: string): number {
  const open = key.indexOf('{');
  const close = open === -1 ? -1 : key.indexOf('}', open);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  for (const byte of utf8.encode(hashed)) {
    // In range: the index is one byte.
    crc = ((crc << 8) & 0xffff) ^ (CRC16[(crc >> 8) ^ byte] as number);
  }
  return crc % SLOTS;
}

function crc16Table(): Uint16Array {
  const POLYNOMIAL = 0x1021;
  const table = new Uint16Array(256);
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte << 8;
    for (let bit = 0; bit < 8; bit++) {
      crc = crc & 0x8000 ? (crc << 1) ^ POLYNOMIAL : crc << 1;
    }
    table[byte] = crc;
  }
  return table;
}
