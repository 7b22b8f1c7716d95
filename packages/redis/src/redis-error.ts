import { BrokerError, isBrokerError } from '@brokerfeed/core';

/**
 * What an error says of the command that it answers.
 *
 * - `moved`: not executed, and not by this server: another is the primary now, or this one is not ready.
 * - `redirected`: not executed; another server of the cluster holds the key.
 * - `busy`: not executed; the server may do so soon.
 * - `lost`: the connection broke. Whether it was executed is unknown.
 * - `refused`: the server answers the same as long as nothing is changed there.
 */
export type Outcome = 'moved' | 'redirected' | 'busy' | 'lost' | 'refused';

const OUTCOMES: Readonly<Record<string, Outcome>> = {
  READONLY: 'moved',
  LOADING: 'moved',
  MASTERDOWN: 'moved',
  MOVED: 'redirected',
  ASK: 'redirected',
  TRYAGAIN: 'busy',
  CLUSTERDOWN: 'busy',
  BUSY: 'busy',
  NOREPLICAS: 'busy',
  MISCONF: 'busy',
};

/** What was read came from a replica. */
export class NoPrimaryError extends Error {
  override readonly name = 'NoPrimaryError';

  constructor() {
    super('the server is a replica now');
  }
}

/** Tells what an error means for the command it answers. */
export function outcomeOf(error: unknown): Outcome {
  if (error instanceof NoPrimaryError) return 'moved';
  const code = replyCode(error);
  return code === undefined ? 'lost' : (OUTCOMES[code] ?? 'refused');
}

/** Makes a `BrokerError` of whatever a command or a connection failed with. */
export function toBrokerError(error: unknown, doing: string): BrokerError {
  if (isBrokerError(error)) return error;
  const cause = { cause: error };
  const code = replyCode(error);
  const message = error instanceof Error ? error.message : String(error);
  switch (code) {
    case 'UNSUPPORTED':
      return new BrokerError(
        'UNSUPPORTED',
        `${doing} needs Redis 7, Valkey or newer: an older server does not count the entries added to a stream`,
        cause,
      );
    case 'NOPERM':
      return new BrokerError(
        'UNSUPPORTED',
        `${doing} needs a permission that the Redis user lacks: ${message}`,
        cause,
      );
    case 'WRONGTYPE':
      return new BrokerError(
        'DAMAGED',
        `${doing} found a key of its name that is no stream of topics`,
        cause,
      );
    default:
      return new BrokerError('UNAVAILABLE', `${doing} failed: ${message}`, cause);
  }
}

/** Whether a server answered an error, rather than that the client made it. */
export function isReplyError(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError';
}

/** The first word of an error reply; undefined where the error is the client's own. */
function replyCode(error: unknown): string | undefined {
  if (!isReplyError(error)) return undefined;
  // An error of a command in a script comes back with its code, sometimes behind a generic one.
  const words = /^(?:ERR Error running script.*?: )?-?(?:ERR )?([A-Z]{3,})\b/.exec(error.message);
  return words?.[1] ?? 'ERR';
}
