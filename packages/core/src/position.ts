/**
 * A place in a topic: between two commits, or before the first, or after the last.
 *
 * Why an epoch: a log holds commits 1, 2, 3 and a client has seen all three. The store is lost and made anew, and four
 * other commits are written. By number alone the client would be given the fourth and believe that it had missed one;
 * in truth it has missed four. The epoch names the incarnation of the log, so that the old position means nothing in
 * the new one, and the client is told.
 *
 * Why an id beside the ordinal: a failover may lose the newest commits and write others in their place. The ordinals
 * are the same, the ids are not.
 *
 * Why an ordinal beside the id: after a trim, ids alone cannot tell a client that holds the last trimmed commit (it has
 * missed nothing) from one that holds the commit before it (it has).
 *
 * @see {@link https://pkg.go.dev/github.com/centrifugal/centrifuge#StreamPosition} whose offset and epoch this extends
 */
export interface Position {
  /** The incarnation of the topic: twelve characters of base64url, made by {@link newEpoch}. */
  readonly epoch: string;
  /** The broker's own name of the commit before this place: one decimal number, or two joined by `-`. */
  readonly id: string;
  /** How many commits of this incarnation lie before this place. The first commit's own position has 1. */
  readonly ordinal: number;
}

/** The form of {@link Position.epoch}: nine bytes in base64url. */
export const EPOCH_PATTERN: RegExp = /^[A-Za-z0-9_-]{12}$/;

const EPOCH_BYTES = 9;

/** Random bytes, drawn for many epochs at a time: a draw costs more than the rest of an append to Redis, which brings one. */
let drawn: Buffer = Buffer.alloc(0);
let used = 0;

/** Makes the name of a new incarnation: 72 random bits. */
export function newEpoch(): string {
  if (used === drawn.length) {
    drawn = Buffer.from(crypto.getRandomValues(new Uint8Array(256 * EPOCH_BYTES)));
    used = 0;
  }
  used += EPOCH_BYTES;
  return drawn.toString('base64url', used - EPOCH_BYTES, used);
}

/** Tells whether two positions are the same place of the same log. */
export function samePosition(a: Position, b: Position): boolean {
  return a.ordinal === b.ordinal && a.id === b.id && a.epoch === b.epoch;
}
