import { BrokerError } from '@brokerfeed/core';

/** Bytes that no append wrote, and where they are. */
export class DamageError extends BrokerError {
  readonly file: string;
  readonly offset: number;
  readonly what: string;

  constructor(file: string, offset: number, what: string, cause?: unknown) {
    super('DAMAGED', `${file} at byte ${offset}: ${what}`, { cause });
    this.file = file;
    this.offset = offset;
    this.what = what;
  }
}

export function damaged(file: string, offset: number, what: string, cause?: unknown): DamageError {
  return new DamageError(file, offset, what, cause);
}
