import { BrokerError, type Headers, NO_HEADERS } from '@brokerfeed/core';

/** The version of FORMAT.md that this code writes and reads. */
export const FORMAT = 1;

/** The first line of a segment. */
export interface SegmentHeader {
  readonly journal: string;
  readonly format: number;
  readonly first: number;
  readonly boot: number;
  readonly salt: string;
  readonly at: number;
}

/** What one commit writes to one topic. */
export interface TopicCommit {
  readonly topic: string;
  readonly ordinal: number;
  /** With `after`, on the topic's first commit of a segment. */
  readonly epoch?: string | undefined;
  /** The boot of the topic's previous commit; 0 before the first. */
  readonly after?: number | undefined;
  /** The newest ordinal that the append's own retention removed. */
  readonly floor?: number | undefined;
  readonly values: readonly string[];
  readonly headers?: Headers | undefined;
}

interface RecordBase {
  readonly seq: number;
  readonly at: number;
  readonly durable?: number | undefined;
}

export interface CommitRecord extends RecordBase {
  readonly commits: readonly TopicCommit[];
  readonly key?: string | undefined;
  readonly all?: boolean | undefined;
}

/** A topic that keeps its count although nothing of it is retained: name, epoch, newest ordinal, its boot. */
export type CarriedTopic = readonly [topic: string, epoch: string, ordinal: number, boot: number];

export type ControlRecord = RecordBase &
  (
    | { readonly trim: string; readonly floor: number }
    | { readonly drop: string; readonly salt: string }
    | { readonly carry: readonly CarriedTopic[] }
    | { readonly retire: number }
  );

export type JournalRecord = CommitRecord | ControlRecord;

/**
 * Prints a commit; `textOf` answers a topic's name in JSON. By hand: this is what an append costs most, and handing the whole
 * to `JSON.stringify` would take nearly twice as long.
 */
export function printCommit(record: CommitRecord, textOf: (topic: string) => string): string {
  let text = `{"seq":${record.seq},"at":${record.at}`;
  if (record.durable !== undefined) text += `,"durable":${record.durable}`;
  if (record.key !== undefined) text += `,"key":${JSON.stringify(record.key)}`;
  if (record.all === true) text += ',"all":true';
  text += ',"commits":[';
  for (let index = 0; index < record.commits.length; index += 1) {
    const commit = record.commits[index] as TopicCommit;
    text += `${index === 0 ? '' : ','}{"topic":${textOf(commit.topic)},"ordinal":${commit.ordinal}`;
    if (commit.epoch !== undefined) text += `,"epoch":"${commit.epoch}","after":${commit.after}`;
    if (commit.floor !== undefined) text += `,"floor":${commit.floor}`;
    text += `,"values":${printValues(commit.values)}`;
    if (commit.headers !== undefined && commit.headers !== NO_HEADERS) {
      text += `,"headers":${JSON.stringify(commit.headers)}`;
    }
    text += '}';
  }
  return `${text}]}`;
}

function printValues(values: readonly string[]): string {
  return values.length === 1 ? `[${JSON.stringify(values[0])}]` : JSON.stringify(values);
}

/** Reads the JSON of a whole line. Its checksum vouches for what a journal wrote, so only the kind is looked at. */
export function parseRecord(text: string): JournalRecord {
  const record = JSON.parse(text) as JournalRecord;
  if (isCommit(record)) return record;
  if ('trim' in record || 'drop' in record || 'carry' in record || 'retire' in record)
    return record;
  throw new BrokerError(
    'UNSUPPORTED',
    `a record of another kind (${Object.keys(record).join(', ')}): written by a newer version`,
  );
}

/** Reads the first line of a segment, or answers undefined where that is something else. */
export function parseHeader(text: string): SegmentHeader | undefined {
  const header = JSON.parse(text) as SegmentHeader;
  if (typeof header.journal !== 'string' || typeof header.first !== 'number') return undefined;
  if (header.format !== FORMAT) {
    throw new BrokerError('UNSUPPORTED', `format ${header.format}: this version reads ${FORMAT}`);
  }
  return header;
}

export function isCommit(record: JournalRecord): record is CommitRecord {
  return 'commits' in record;
}
