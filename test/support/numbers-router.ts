import type { Broker } from '@brokerfeed/core';
import { brokerFeed, withFeedErrors } from '@brokerfeed/trpc';
import { initTRPC, TRPCError } from '@trpc/server';
import { SIGNED } from './router.ts';

export interface NumbersContext {
  readonly isSignedIn: boolean;
}

export const NUMBERS = 'numbers';

const t = initTRPC.context<NumbersContext>().create({ errorFormatter: withFeedErrors() });

const signedIn = t.procedure.use(({ ctx, next }) => {
  if (!ctx.isSignedIn) throw new TRPCError({ code: 'UNAUTHORIZED' });
  return next();
});

export type NumbersRouter = ReturnType<typeof numbersRouter>;

/** Makes a router with one topic, for whoever is signed in: a feed that says what is lost, and one that sends a snapshot instead. */
export function numbersRouter(broker: Broker, snapshot: () => readonly number[]) {
  const options = { ...SIGNED, control: true, decode: (text: string): number => Number(text) };
  return t.router({
    plain: signedIn.subscription(brokerFeed(broker, NUMBERS, options)),
    healed: signedIn.subscription(
      brokerFeed(broker, NUMBERS, { ...options, onGap: () => ({ snapshot: [...snapshot()] }) }),
    ),
  });
}
