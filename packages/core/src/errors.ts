/**
 * What went wrong below a feed. Each code has a section in docs/errors.md.
 *
 * - `CLOSED`: the broker was closed.
 * - `UNAVAILABLE`: the store cannot be reached now; trying again may help.
 * - `UNSUPPORTED`: the store is too old or lacks something that the broker needs.
 * - `DAMAGED`: the store holds bytes that no append wrote.
 * - `OPTION_INVALID`: an option given at construction.
 * - `TOPIC_INVALID`, `VALUE_INVALID`, `HEADERS_INVALID`, `ENTRY_TOO_LARGE`: what was to be appended or read.
 * - `IDEMPOTENCY_CONFLICT`: the idempotency key was used for other values.
 */
export const BROKER_ERROR_CODES = [
  'CLOSED',
  'UNAVAILABLE',
  'UNSUPPORTED',
  'DAMAGED',
  'OPTION_INVALID',
  'TOPIC_INVALID',
  'VALUE_INVALID',
  'HEADERS_INVALID',
  'ENTRY_TOO_LARGE',
  'IDEMPOTENCY_CONFLICT',
] as const;

/** One of {@link BROKER_ERROR_CODES}. */
export type BrokerErrorCode = (typeof BROKER_ERROR_CODES)[number];

/** An error of a broker or of its options: a code to branch on and one sentence with the values. */
export class BrokerError extends Error {
  override readonly name = 'BrokerError';
  readonly code: BrokerErrorCode;

  constructor(code: BrokerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/**
 * Tells whether an error is a {@link BrokerError}, of one of the codes where any are given. Goes by its name: bundlers make
 * several copies of a package, each with a class of its own.
 */
export function isBrokerError(
  error: unknown,
  ...codes: readonly BrokerErrorCode[]
): error is BrokerError {
  if (!(error instanceof Error) || error.name !== 'BrokerError') return false;
  return codes.length === 0 || codes.includes((error as BrokerError).code);
}
