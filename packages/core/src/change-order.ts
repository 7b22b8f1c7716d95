import { BrokerError, isBrokerError } from './errors.ts';

/** An append that failed, and may or may not be in the log. */
interface Hole {
  readonly key: string | undefined;
  readonly error: unknown;
}

/** Runs appends one after the other, and lets none pass one that failed: a log with a hole misleads whoever reads it. */
export class ChangeOrder {
  #last: Promise<unknown> = Promise.resolve();
  #hole: Hole | undefined;

  /**
   * Runs an append once all before it are done. After one that failed, unless it was refused and so has written nothing,
   * only a repeat of it is run: an append with the same idempotency key.
   */
  run<T>(key: string | undefined, append: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(async () => {
      const hole = this.#hole;
      if (hole !== undefined && (key === undefined || key !== hole.key)) throw passedOver(hole);
      try {
        const appended = await append();
        this.#hole = undefined;
        return appended;
      } catch (error) {
        if (!isRefusal(error)) this.#hole = { key, error };
        throw error;
      }
    });
    this.#last = turn.catch(() => {});
    return turn;
  }
}

function isRefusal(error: unknown): boolean {
  return isBrokerError(
    error,
    'VALUE_INVALID',
    'HEADERS_INVALID',
    'ENTRY_TOO_LARGE',
    'OPTION_INVALID',
    'IDEMPOTENCY_CONFLICT',
  );
}

function passedOver({ key, error }: Hole): BrokerError {
  const code = isBrokerError(error) ? error.code : 'UNAVAILABLE';
  const next = key === undefined ? 'none can follow it' : 'repeat that one first';
  return new BrokerError(code, `an earlier append of the change feed failed: ${next}`, {
    cause: error,
  });
}
