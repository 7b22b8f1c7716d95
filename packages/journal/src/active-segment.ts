import { BrokerError } from '@brokerfeed/core';
import type { FileSystem, WritableFile } from './file-system.ts';
import type { Layout } from './layout.ts';
import { Segment } from './segment.ts';
import { SegmentIndex } from './segment-index.ts';

/** The segment that is written to. Its bytes are whole writes: a failed one is cut off again. */
export class ActiveSegment {
  readonly segment: Segment;
  /** The bytes in the file, of which `segment.bytes` are applied. */
  #bytes = 0;
  readonly #file: WritableFile;

  private constructor(segment: Segment, file: WritableFile) {
    this.segment = segment;
    this.#file = file;
  }

  /** Makes the file. It has no header yet: that comes with the first write. */
  static create(fs: FileSystem, layout: Layout, first: number, boot: number): ActiveSegment {
    fs.makeDir(layout.segments);
    const segment = new Segment(first, boot);
    segment.index = new SegmentIndex();
    return new ActiveSegment(segment, fs.create(layout.segment(first)));
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Writes all of the bytes or none. Throws `WriteFailure` where none stands, anything else where that is not certain. */
  async write(bytes: Buffer): Promise<void> {
    let failure: unknown;
    try {
      const written = await this.#file.write(bytes);
      if (written !== bytes.length) {
        failure = new Error(`the system took ${written} of ${bytes.length} bytes`);
      }
    } catch (error) {
      failure = error;
    }
    if (failure === undefined) this.#bytes += bytes.length;
    else {
      this.#file.truncate(this.#bytes);
      throw new WriteFailure(failure);
    }
  }

  sync(): Promise<void> {
    return this.#file.dataSync();
  }

  /** Cuts off what was written and never applied. */
  cutToApplied(): void {
    this.#file.truncate(this.segment.bytes);
    this.#bytes = this.segment.bytes;
  }

  close(): void {
    this.#file.close();
  }
}

/** A write that failed and left nothing behind: the next one may succeed. */
export class WriteFailure extends BrokerError {
  constructor(cause: unknown) {
    super('UNAVAILABLE', `the journal could not be written: ${(cause as Error).message}`, {
      cause,
    });
  }
}
