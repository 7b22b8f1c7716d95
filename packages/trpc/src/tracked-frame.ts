import { type TrackedEnvelope, tracked } from '@trpc/server';

let isFirst = true;

/**
 * Makes the envelope of a frame. The first one of a process tells whether tRPC's adapter takes it for one: that of another
 * copy of `@trpc/server` does not know ours, and would send it as an array without an id, which no client can resume from.
 */
export function trackedFrame<T>(token: string, value: T): TrackedEnvelope<T> {
  const envelope = tracked(token, value);
  if (isFirst) {
    isFirst = false;
    // Whoever knows it takes it apart; only who does not writes it whole. Hidden, so that it is no part of the value.
    Object.defineProperty(envelope, 'toJSON', { value: warnOfCopies });
  }
  return envelope;
}

function warnOfCopies(this: TrackedEnvelope<unknown>): unknown {
  process.emitWarning(
    'frames of brokerFeed are sent without ids, since the server runs another copy of @trpc/server than @brokerfeed/trpc: ' +
      'see docs/compatibility.md, "One copy of tRPC"',
    { code: 'BROKERFEED_TRPC_COPIES' },
  );
  return [...this];
}
