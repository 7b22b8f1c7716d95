import type { Position } from '@brokerfeed/core';

/*
 * Positions that no append made, as a rolled back store leaves them with clients, or a client invents them where tokens
 * are not signed.
 */

/** A place beyond the end: `count` commits after `tip`, under ids that come after its id. */
export function aheadOf(tip: Position, count = 1): Position {
  const [first = '0', ...rest] = tip.id.split('-');
  const id = [String(BigInt(first) + BigInt(count)), ...rest].join('-');
  return { ...tip, id, ordinal: tip.ordinal + count };
}

/** The place of a commit that is in the log, under the id of another commit. */
export function forkedAt(position: Position, other: Position): Position {
  return { ...position, id: other.id };
}

/** The same place in an incarnation that never was. */
export function foreign(position: Position): Position {
  return {
    ...position,
    epoch: position.epoch === 'AAAAAAAAAAAA' ? 'BBBBBBBBBBBB' : 'AAAAAAAAAAAA',
  };
}
