/** What an entry holds: one text of filler, or rows such as a table has, for which a transformer has work to do. */
export type Shape = 'filler' | 'rows';

/** Makes entries of about `bytes` of JSON. The mark `#0000000123` in each survives whatever encodes them anew. */
export function payloads(bytes: number, shape: Shape): (seq: number) => string {
  const tail = shape === 'filler' ? filler(bytes) : rows(bytes);
  return (seq) => `{"seq":"#${String(seq).padStart(SEQ_DIGITS, '0')}",${tail}}`;
}

/** Length of the JSON around what fills it. */
const FRAME_BYTES = '{"seq":"#0000000000",}'.length;
const SEQ_DIGITS = 10;
const MARK = '#'.charCodeAt(0);
const ZERO = '0'.charCodeAt(0);

function filler(bytes: number): string {
  const length = Math.max(0, bytes - FRAME_BYTES - '"pad":""'.length);
  return `"pad":"${'abcdefghij'.repeat(Math.ceil(length / 10)).slice(0, length)}"`;
}

function rows(bytes: number): string {
  const texts: string[] = [];
  for (let id = 1; texts.join(',').length < bytes - FRAME_BYTES; id += 1) {
    const at = new Date(Date.UTC(2026, 0, 1, 0, 0, id)).toISOString();
    texts.push(JSON.stringify({ id, name: `row ${id}`, price: id * 1.25, open: id % 2 === 0, at }));
  }
  return `"rows":[${texts.join(',')}]`;
}

/** Finds the number of an entry in a frame. It stands at the same place in most: there it looks first. */
export class SeqScanner {
  #offset = 0;

  /** Answers -1 where the frame holds no entry. */
  find(frame: Buffer, start: number, end: number): number {
    if (frame[start + this.#offset] !== MARK) {
      let at = start;
      while (at < end && frame[at] !== MARK) at += 1;
      if (at === end) return -1;
      this.#offset = at - start;
    }
    const first = start + this.#offset + 1;
    if (first + SEQ_DIGITS > end) return -1;
    let seq = 0;
    for (let at = first; at < first + SEQ_DIGITS; at += 1) {
      seq = seq * 10 + ((frame[at] ?? ZERO) - ZERO);
    }
    return seq;
  }
}
