/** What Redis takes for an id, in the only spelling that it answers with. */
const ID_PATTERN = /^0*(\d+)-0*(\d+)$/;
const MAX_ID_LENGTH = 64;
const MAX_PART = 2n ** 64n - 1n;

/** The id of the place before the first commit. */
export const ZERO_ID = '0-0';

/** Beyond every id that a commit can have. */
export const NO_ID: string = `${MAX_PART}-${MAX_PART}`;

/** Spells an id as Redis does, or answers undefined where the text is none. */
export function canonicalId(text: string): string | undefined {
  if (text.length > MAX_ID_LENGTH) return undefined;
  const parts = ID_PATTERN.exec(text);
  if (parts === null) return undefined;
  const [, ms, seq] = parts as unknown as readonly [string, string, string];
  return isPart(ms) && isPart(seq) ? `${ms}-${seq}` : undefined;
}

/**
 * Orders two ids in Redis' spelling: negative where `a` comes first. Parts are compared as the 64-bit numbers that they
 * are: as text `10-0` would come before `9-0`, and as doubles the largest ones would be equal.
 */
export function compareIds(a: string, b: string): number {
  if (a === b) return 0;
  const [aMs, aSeq] = split(a);
  const [bMs, bSeq] = split(b);
  return compareDigits(aMs, bMs) || compareDigits(aSeq, bSeq);
}

/** The largest id below another: where a reader stands that has everything before it. */
export function precedingId(id: string): string {
  const [ms, seq] = split(id);
  if (seq !== '0') return `${ms}-${BigInt(seq) - 1n}`;
  return ms === '0' ? ZERO_ID : `${BigInt(ms) - 1n}-${MAX_PART}`;
}

function split(id: string): [string, string] {
  const dash = id.indexOf('-');
  return [id.slice(0, dash), id.slice(dash + 1)];
}

function compareDigits(a: string, b: string): number {
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

function isPart(digits: string): boolean {
  return digits.length <= 20 && BigInt(digits) <= MAX_PART;
}
