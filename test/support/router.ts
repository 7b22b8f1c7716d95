import { withFeedErrors } from '@brokerfeed/trpc';
import { initTRPC } from '@trpc/server';

/** The tRPC root of the end-to-end tests: as the README sets one up. */
export const t = initTRPC.create({ errorFormatter: withFeedErrors() });

export const SECRET = 'a secret of sixteen bytes and more';
export const OTHER_SECRET = 'another secret, nobody else has it';

/** Options that most feeds of these tests want: signed, and no live read that outlives its subscribers. */
export const SIGNED = { secret: SECRET, lingerMs: 0 } as const;
