import { join } from 'node:path';

const SEQUENCE_DIGITS = 16;
const SEGMENT_NAME = /^(\d{16})\.log$/;
const CHECKPOINT_NAME = /^(\d{16})\.json$/;

/** Names the files of a journal's folder. */
export class Layout {
  readonly dir: string;
  readonly identity: string;
  readonly lock: string;
  readonly segments: string;
  readonly checkpoints: string;
  readonly indexes: string;
  readonly quarantine: string;

  constructor(dir: string) {
    this.dir = dir;
    this.identity = join(dir, 'journal.json');
    this.lock = join(dir, 'lock');
    this.segments = join(dir, 'segments');
    this.checkpoints = join(dir, 'checkpoints');
    this.indexes = join(dir, 'indexes');
    this.quarantine = join(dir, 'quarantine');
  }

  segment(first: number): string {
    return join(this.segments, segmentName(first));
  }

  checkpoint(next: number): string {
    return join(this.checkpoints, `${digits(next)}.json`);
  }

  index(first: number): string {
    return join(this.indexes, `${digits(first)}.index`);
  }

  torn(first: number, offset: number, boot: number): string {
    return join(this.quarantine, `${digits(first)}-${offset}-${boot}.torn`);
  }
}

export function segmentName(first: number): string {
  return `${digits(first)}.log`;
}

/** The first sequence in the name of a segment, or undefined for another file. */
export function parseSegmentName(name: string): number | undefined {
  return parse(SEGMENT_NAME, name);
}

/** The next sequence in the name of a checkpoint, or undefined for another file. */
export function parseCheckpointName(name: string): number | undefined {
  return parse(CHECKPOINT_NAME, name);
}

function digits(sequence: number): string {
  return String(sequence).padStart(SEQUENCE_DIGITS, '0');
}

function parse(pattern: RegExp, name: string): number | undefined {
  const match = pattern.exec(name);
  return match === null ? undefined : Number(match[1]);
}
