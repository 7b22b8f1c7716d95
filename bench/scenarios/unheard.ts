import type { Scenario } from '../harness/scenario.ts';

/** Many short ones: on a busy machine some of them are left alone. */
const ROUNDS = 100;

/** What it costs to tell of something where nobody listens, and beside it what it costs where somebody does. */
export const unheard: Scenario = {
  name: 'unheard',
  title: 'one call that nobody hears, or few, in memory: a value of 140 B, given as a function',
  systems: [
    'call-bare',
    'call-announce',
    'call-announce-elsewhere',
    'call-announce-heard',
    'call-encode',
    'call-async',
    'call-change',
    'call-change-heard',
    'call-append',
    'call-append-watched',
    'call-change-log',
  ],
  barSystems: [],
  reference: 'call-bare',
  columns: [
    { metric: 'ns', title: 'ns/call' },
    { metric: 'bytes', title: 'bytes/call' },
  ],
  async call(child, sizes) {
    return child.call('measure', { calls: sizes.calls, rounds: ROUNDS });
  },
};
