import { limit } from '../lib/limit.mjs';

export const system = limit('batch');
