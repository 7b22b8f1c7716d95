import { trpcShared } from '../lib/trpc-shared.mjs';

export const system = trpcShared('ws');
