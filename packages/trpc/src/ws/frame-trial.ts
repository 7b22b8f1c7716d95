import type { TrackedEnvelope } from '@trpc/server';

/** The trial whose envelope was read last, until something is sent. */
let reading: FrameTrial | undefined;

/**
 * Finds out whether an envelope leaves on one connection, and how. It notices when its data are read: tRPC's loop reads
 * them once, encodes them, sends the text and asks for the next value, all in one turn. So what is sent between that
 * read and that question is this envelope and no other, whoever else sends at the time.
 */
export class FrameTrial {
  readonly #connection: object;
  readonly #expected: string;
  #reads = 0;
  #matched = false;

  /** Watches `envelope`, which is expected to leave on `connection` as this text. */
  constructor(connection: object, envelope: TrackedEnvelope<unknown>, expected: string) {
    this.#connection = connection;
    this.#expected = expected;
    const data = envelope[1];
    Object.defineProperty(envelope, 1, {
      get: () => {
        this.#reads += 1;
        reading = this;
        return data;
      },
    });
  }

  /** Notes that a connection sends something. Answers the trial which expected just that, if one did. */
  static match(connection: object, data: unknown): FrameTrial | undefined {
    const trial = reading;
    reading = undefined;
    if (trial === undefined || trial.#connection !== connection) return undefined;
    if (trial.#expected !== data) return undefined;
    trial.#matched = true;
    return trial;
  }

  /** Ends the trial, and tells whether it was passed. Whoever read the data more than once is not tRPC's loop alone. */
  passed(): boolean {
    if (reading === this) reading = undefined;
    return this.#matched && this.#reads === 1;
  }
}
