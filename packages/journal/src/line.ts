import { crc32 } from 'node:zlib';

/*
 * A line: CRC-32 of the JSON in 8 hex digits, a space, the JSON, a line feed. Any flipped bit makes it another line or
 * none: a bit of the checksum or of the text fails the check, the space is compared, and without its line feed a line
 * runs into the next one.
 */

/** Bytes before the JSON. */
export const LINE_HEAD = 9;

const LF = 0x0a;
const SPACE = 0x20;
const HEX = Buffer.from('0123456789abcdef');

/** Makes one line. */
export function encodeLine(json: string): Buffer {
  const line = Buffer.allocUnsafe(LINE_HEAD + Buffer.byteLength(json) + 1);
  finishLine(line, 0, line.write(json, LINE_HEAD));
  return line;
}

/** Puts checksum, space and line feed around `length` bytes of JSON that stand at `at + LINE_HEAD`. Answers the line's end. */
export function finishLine(buffer: Buffer, at: number, length: number): number {
  const start = at + LINE_HEAD;
  let crc = crc32(buffer.subarray(start, start + length));
  for (let digit = 7; digit >= 0; digit -= 1) {
    buffer[at + digit] = HEX[crc & 0xf] as number;
    crc >>>= 4;
  }
  buffer[at + 8] = SPACE;
  buffer[start + length] = LF;
  return start + length + 1;
}

/** The JSON of the whole line from `start` up to its line feed at `end`, or undefined where the line is not whole. */
export function lineText(buffer: Buffer, start: number, end: number): string | undefined {
  if (end - start < LINE_HEAD || buffer[start + 8] !== SPACE) return undefined;
  let stated = 0;
  for (let digit = 0; digit < 8; digit += 1) {
    const value = hexValue(buffer[start + digit] as number);
    if (value < 0) return undefined;
    stated = (stated << 4) | value;
  }
  const json = buffer.subarray(start + LINE_HEAD, end);
  return crc32(json) === stated >>> 0 ? json.toString('utf8') : undefined;
}

/** What a scan found: the JSON of a whole line, or undefined for one that is not; and the bytes it takes. */
export type OnLine = (text: string | undefined, start: number, end: number) => boolean;

/**
 * Calls back for every line of a buffer, with the places of its first byte and of the byte after it, until the callback
 * answers false. Bytes after the last line feed are a line that is not whole.
 */
export function scanLines(buffer: Buffer, onLine: OnLine): void {
  let start = 0;
  while (start < buffer.length) {
    const feed = buffer.indexOf(LF, start);
    const end = feed < 0 ? buffer.length : feed + 1;
    const text = feed < 0 ? undefined : lineText(buffer, start, feed);
    if (!onLine(text, start, end)) return;
    start = end;
  }
}

function hexValue(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  if (byte >= 0x61 && byte <= 0x66) return byte - 0x57;
  return -1;
}
