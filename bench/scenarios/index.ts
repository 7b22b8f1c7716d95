import type { Scenario } from '../harness/scenario.ts';
import { catchUp } from './catch-up.ts';
import { fanOut } from './fan-out.ts';
import { herd } from './herd.ts';
import { superjson2k, superjson10k } from './large.ts';
import { latency } from './latency.ts';
import { mapped } from './mapped.ts';
import { memory } from './memory.ts';
import { noSubscribers } from './no-subscribers.ts';
import { pause } from './pause.ts';
import { single } from './single.ts';
import { sse } from './sse.ts';
import { topics } from './topics.ts';
import { unheard } from './unheard.ts';

export const SCENARIOS: readonly Scenario[] = [
  fanOut,
  single,
  latency,
  catchUp,
  herd,
  topics,
  mapped,
  sse,
  superjson2k,
  superjson10k,
  memory,
  pause,
  noSubscribers,
  unheard,
];
