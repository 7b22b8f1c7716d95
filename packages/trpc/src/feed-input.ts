import type { TRPCProcedureBuilder, TRPCUnsetMarker } from '@trpc/server';
import { initTRPC } from '@trpc/server';
import { parkLastEventId } from './last-event-id.ts';

/** A procedure builder that adds nothing to context and input. */
export type FeedInputBuilder = TRPCProcedureBuilder<
  object,
  object,
  object,
  TRPCUnsetMarker,
  TRPCUnsetMarker,
  TRPCUnsetMarker,
  TRPCUnsetMarker,
  false,
  unknown
>;

/**
 * Makes the builder that lets a strict input schema resume: `t.procedure.concat(feedInput()).input(strictSchema)`. It goes
 * before the schema, and takes `lastEventId` out of what the schema sees; the feed still finds it.
 *
 * Without it a schema that refuses unknown keys accepts a first subscription and refuses every resume. Schemas that strip
 * or pass unknown keys do not need it.
 */
export function feedInput(): FeedInputBuilder {
  return initTRPC.create().procedure.use(async ({ getRawInput, next }) => {
    const raw = await getRawInput();
    if (typeof raw !== 'object' || raw === null || !Object.hasOwn(raw, 'lastEventId'))
      return next();
    const { lastEventId, ...rest } = raw as { readonly lastEventId: unknown };
    const getRest = (): Promise<unknown> => Promise.resolve(rest);
    parkLastEventId(getRest, lastEventId);
    return next({ getRawInput: getRest });
  });
}
