import {
  type CheckedAppend,
  type Entry,
  type Headers,
  headerBag,
  NO_HEADERS,
} from '@brokerfeed/core';

/*
 * A commit is one stream entry. The append script writes the fields `o` (the commit's ordinal), `p` (the id of the commit
 * before it, `0-0` for the first) and `e` (the epoch), then `h` (headers as one JSON object) where there are any, then the
 * values: `v` for each, or one `j` with a JSON array of them all. Whatever else XADDs to a topic writes `v` fields, or any
 * fields at all.
 */

/** An entry of a stream as Redis answers it: its id, and names and values of its fields in turn. */
export type StreamEntry = readonly [id: string, fields: readonly string[]];

/**
 * Which commit this is and which one it follows, as the append script wrote it. The epoch is needed: a topic deleted and
 * made anew within a millisecond repeats ids and ordinals.
 */
export interface Mark {
  readonly epoch: string;
  readonly ordinal: number;
  readonly previousId: string;
}

/** A Lua script passes on some 8,000 arguments at the most. */
const MAX_VALUE_FIELDS = 1000;

/** Names and values of a mark. */
const MARK_FIELDS = 6;

const ORDINAL_PATTERN = /^\d+$/;
const PREVIOUS_PATTERN = /^\d+-\d+$/;

/** Answers the fields that hold the values of a commit. */
export function valueFields({ entries }: CheckedAppend): string[] {
  if (entries.length > MAX_VALUE_FIELDS) {
    return ['j', JSON.stringify(entries.map(({ value }) => value))];
  }
  return entries.flatMap(({ value }) => ['v', value]);
}

/** Answers the headers of a commit as the append script takes them: nothing where there are none. */
export function headersText({ headers }: CheckedAppend): string {
  return headers === NO_HEADERS || Object.keys(headers).length === 0 ? '' : JSON.stringify(headers);
}

/** Reads what the append script wrote of a commit's place; undefined for a commit of a bare XADD. */
export function readMark(fields: readonly string[]): Mark | undefined {
  const [first, ordinal = '', second, previousId = '', third, epoch = ''] = fields;
  if (first !== 'o' || second !== 'p' || third !== 'e') return undefined;
  if (!ORDINAL_PATTERN.test(ordinal) || !PREVIOUS_PATTERN.test(previousId)) return undefined;
  return { epoch, ordinal: Number(ordinal), previousId };
}

/** Reads the entries of a commit. Never throws: what no append wrote becomes one entry, the JSON object of its fields. */
export function readEntries(fields: readonly string[]): readonly Entry[] {
  const marked = readMark(fields) !== undefined;
  const values: string[] = [];
  let headers = NO_HEADERS;
  for (let i = marked ? MARK_FIELDS : 0; i + 1 < fields.length; i += 2) {
    const text = fields[i + 1] as string;
    if (fields[i] === 'v') values.push(text);
    else if (fields[i] === 'h') headers = readHeaders(text);
    else if (marked && fields[i] === 'j') values.push(...readValues(text));
  }
  if (values.length === 0) return [{ value: fieldsAsJson(fields), headers: NO_HEADERS }];
  return values.map((value) => ({ value, headers }));
}

function readHeaders(text: string): Headers {
  const bag = parse(text);
  if (typeof bag !== 'object' || bag === null || Array.isArray(bag)) return NO_HEADERS;
  const pairs: [string, unknown][] = Object.entries(bag);
  return pairs.every(isTextPair) ? headerBag(pairs) : NO_HEADERS;
}

function readValues(text: string): readonly string[] {
  const values = parse(text);
  const isText = (value: unknown): value is string => typeof value === 'string';
  return Array.isArray(values) && values.every(isText) ? values : [];
}

function fieldsAsJson(fields: readonly string[]): string {
  // Without prototype, so that a field named __proto__ is one like the others.
  const record: Record<string, string> = Object.create(null);
  for (let i = 0; i + 1 < fields.length; i += 2)
    record[fields[i] as string] = fields[i + 1] as string;
  return JSON.stringify(record);
}

function isTextPair(pair: [string, unknown]): pair is [string, string] {
  return typeof pair[1] === 'string';
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
