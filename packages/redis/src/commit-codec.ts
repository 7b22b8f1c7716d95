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
 * fields at all. What is announced of a commit is made of the same fields.
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

/** What those who read a topic live are told of a commit. */
export interface CommitNotice extends Mark {
  readonly id: string;
  /** Undefined where they were left out: the log has them. */
  readonly entries: readonly Entry[] | undefined;
}

/** A Lua script passes on some 8,000 arguments at the most. */
const MAX_VALUE_FIELDS = 1000;

/** Names and values of a mark. */
const MARK_FIELDS = 6;

const ORDINAL_PATTERN = /^\d+$/;
const ID_PATTERN = /^\d+-\d+$/;
/** Kind, id, ordinal, predecessor's id, epoch. */
const ANNOUNCED_PATTERN = /^([vfn]) (\d+-\d+) (\d+) (\d+-\d+) (\S+)$/;

/** Answers the fields of a commit that follow its mark: headers, where there are any, and values. */
export function commitFields({ entries, headers }: CheckedAppend): string[] {
  const fields =
    headers === NO_HEADERS || Object.keys(headers).length === 0
      ? []
      : ['h', JSON.stringify(headers)];
  if (entries.length > MAX_VALUE_FIELDS) {
    return [...fields, 'j', JSON.stringify(entries.map(({ value }) => value))];
  }
  for (const { value } of entries) fields.push('v', value);
  return fields;
}

/** Reads what the append script wrote of a commit's place; undefined for a commit of a bare XADD. */
export function readMark(fields: readonly string[]): Mark | undefined {
  const [first, ordinal = '', second, previousId = '', third, epoch = ''] = fields;
  if (first !== 'o' || second !== 'p' || third !== 'e') return undefined;
  if (!ORDINAL_PATTERN.test(ordinal) || !ID_PATTERN.test(previousId)) return undefined;
  return { epoch, ordinal: Number(ordinal), previousId };
}

/** Reads the entries of a commit. Never throws: what no append wrote becomes one entry, the JSON object of its fields. */
export function readEntries(fields: readonly string[]): readonly Entry[] {
  const marked = readMark(fields) !== undefined;
  return valuesOf(fields, marked ? MARK_FIELDS : 0, marked) ?? [textEntry(fieldsAsJson(fields))];
}

/**
 * Reads the notice of a commit on its topic's channel: one line with a kind and the mark, then the value (`v`), the
 * fields after the mark as JSON (`f`), or nothing (`n`: too large). Undefined for anything else. Never throws.
 */
export function readNotice(text: string): CommitNotice | undefined {
  const lineEnd = text.indexOf('\n');
  const [, kind, id, ordinal, previousId, epoch] =
    ANNOUNCED_PATTERN.exec(lineEnd < 0 ? text : text.slice(0, lineEnd)) ?? [];
  if (!id || !previousId || !epoch) return undefined;
  const place = { epoch, ordinal: Number(ordinal), previousId, id };
  if (lineEnd < 0) return { ...place, entries: undefined };
  if (kind === 'v') return { ...place, entries: [textEntry(text.slice(lineEnd + 1))] };
  const fields = kind === 'f' ? parse(text.slice(lineEnd + 1)) : undefined;
  return { ...place, entries: isTexts(fields) ? valuesOf(fields, 0, true) : undefined };
}

function valuesOf(
  fields: readonly string[],
  from: number,
  marked: boolean,
): readonly Entry[] | undefined {
  const values: string[] = [];
  let headers = NO_HEADERS;
  for (let i = from; i + 1 < fields.length; i += 2) {
    const text = fields[i + 1] as string;
    if (fields[i] === 'v') values.push(text);
    else if (fields[i] === 'h') headers = readHeaders(text);
    else if (marked && fields[i] === 'j') values.push(...readValues(text));
  }
  return values.length === 0 ? undefined : values.map((value) => ({ value, headers }));
}

function textEntry(value: string): Entry {
  return { value, headers: NO_HEADERS };
}

function readHeaders(text: string): Headers {
  const bag = parse(text);
  if (typeof bag !== 'object' || bag === null || Array.isArray(bag)) return NO_HEADERS;
  const pairs: [string, unknown][] = Object.entries(bag);
  return pairs.every(isTextPair) ? headerBag(pairs) : NO_HEADERS;
}

function readValues(text: string): readonly string[] {
  const values = parse(text);
  return isTexts(values) ? values : [];
}

function isTexts(values: unknown): values is string[] {
  return Array.isArray(values) && values.every((value) => typeof value === 'string');
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
