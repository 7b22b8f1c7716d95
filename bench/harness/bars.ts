import type { Summary } from './summary.ts';
import { markdown, numberText } from './table.ts';

/** How a figure of ours is judged. */
type Rule =
  /** Ours divided by another's. */
  | { readonly kind: 'at-most'; readonly of: readonly string[]; readonly limit: number }
  /** Another's divided by ours. */
  | { readonly kind: 'less-by'; readonly of: string; readonly limit: number }
  /** Ours less another's. */
  | { readonly kind: 'beyond'; readonly of: string; readonly limit: number; readonly unit: string }
  /** Ours less another figure of ours. */
  | {
      readonly kind: 'above';
      readonly metric: string;
      readonly limit: number;
      readonly unit: string;
    }
  /** Ours divided by another figure of ours. */
  | { readonly kind: 'times'; readonly metric: string; readonly limit: number }
  | { readonly kind: 'absolute'; readonly limit: number; readonly unit: string };

interface Bar {
  readonly scenario: string;
  readonly text: string;
  readonly system: string;
  readonly metric: string;
  readonly rule: Rule;
}

const PEERS = ['socketio', 'graphql', 'orpc', 'trpc-shared', 'trpc-reader'];

/** What brokerfeed holds itself to. */
export const BARS: readonly Bar[] = [
  bar(
    'fan-out',
    'CPU per delivery, to the batched limit',
    'feed',
    'serverUs',
    atMost(1.5, 'limit-batch'),
  ),
  bar(
    'fan-out',
    'CPU per delivery, to stock tRPC with a reader per subscriber',
    'feed',
    'serverUs',
    lessBy(40, 'trpc-reader'),
  ),
  bar('fan-out', 'CPU per delivery, to Socket.IO', 'feed', 'serverUs', lessBy(8, 'socketio')),
  bar(
    'fan-out',
    'on the stock adapter, to stock tRPC with a shared reader',
    'feed-stock',
    'serverUs',
    atMost(1, 'trpc-shared'),
  ),
  bar(
    'mapped',
    'CPU per delivery, to stock tRPC with a shared reader',
    'feed',
    'serverUs',
    lessBy(5, 'trpc-shared'),
  ),
  bar(
    'single',
    'CPU per delivery, to raw pre-framed `ws`',
    'feed',
    'serverUs',
    atMost(1.25, 'limit-frame'),
  ),
  bar('latency', 'p99, to raw `ws`', 'feed', 'p99', atMost(1.25, 'limit-string')),
  bar(
    'sse',
    'CPU per delivery, to stock tRPC',
    'feed-sse',
    'serverUs',
    lessBy(5, 'trpc-shared-sse'),
  ),
  bar('catch-up', 'time, to the limit', 'feed', 'ms', atMost(1.5, 'limit-batch')),
  bar('catch-up', 'server CPU, to the limit', 'feed', 'serverMs', atMost(1.5, 'limit-batch')),
  bar('herd', 'time, to the limit', 'feed', 'seconds', atMost(1.5, 'limit-batch')),
  bar('herd', 'server CPU, to the limit', 'feed', 'serverUs', atMost(1.5, 'limit-batch')),
  bar('herd', 'Redis commands of 1,000 clients, to those of 100', 'feed', 'commands', {
    kind: 'times',
    metric: 'commandsFew',
    limit: 1.25,
  }),
  bar('topics', 'server CPU per entry, to the best peer', 'feed', 'serverUs', atMost(1, ...PEERS)),
  bar('topics', 'Redis CPU per entry, to the best peer', 'feed', 'redisUs', atMost(1, ...PEERS)),
  bar('topics', 'Redis connections', 'feed', 'connections', {
    kind: 'absolute',
    limit: 20,
    unit: '',
  }),
  bar('topics', 'server CPU while idle, above that of none', 'feed', 'idleServer', {
    kind: 'above',
    metric: 'emptyServer',
    limit: 0.5,
    unit: '% of a core',
  }),
  bar('topics', 'Redis CPU while idle, above that of none', 'feed', 'idleRedis', {
    kind: 'above',
    metric: 'emptyRedis',
    limit: 0.5,
    unit: '% of a core',
  }),
  bar('memory', 'per subscriber, beyond a bare iterator', 'feed', 'bytes', {
    kind: 'beyond',
    of: 'trpc-bare',
    limit: 2048,
    unit: 'B',
  }),
  bar('memory', 'the same after its first entry', 'feed', 'bytesAfter', {
    kind: 'beyond',
    of: 'trpc-bare',
    limit: 2048,
    unit: 'B',
  }),
  bar('pause', 'longest pause', 'feed', 'pauseMs', { kind: 'absolute', limit: 50, unit: 'ms' }),
];

/** A bar held against what was measured. */
export interface Verdict {
  readonly scenario: string;
  readonly text: string;
  readonly bar: string;
  readonly measured: string;
  readonly pass: boolean;
}

/** Judges the bars of the scenarios that were run. */
export function judge(summaries: readonly Summary[]): Verdict[] {
  return BARS.flatMap(({ scenario, text, system, metric, rule }) => {
    const summary = summaries.find((one) => one.scenario.name === scenario);
    const value = summary && measure(summary, system, metric, rule);
    if (value === undefined || !Number.isFinite(value)) return [];
    const atLeast = rule.kind === 'less-by';
    const unit = 'unit' in rule ? ` ${rule.unit}`.trimEnd() : 'x';
    return {
      scenario,
      text,
      bar: `${atLeast ? '≥' : '≤'} ${numberText(rule.limit)}${unit}`,
      measured: `${numberText(value)}${unit}`,
      pass: atLeast ? value >= rule.limit : value <= rule.limit,
    };
  });
}

export function barTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ scenario, text, bar, measured, pass }) => [
    scenario,
    text,
    bar,
    measured,
    pass ? 'pass' : '**FAIL**',
  ]);
  return markdown(['scenario', 'brokerfeed', 'bar', 'measured', ''], rows);
}

function measure(summary: Summary, system: string, metric: string, rule: Rule): number | undefined {
  const own = summary.spread(system, metric)?.median;
  if (own === undefined) return undefined;
  const less = (other: number | undefined): number | undefined =>
    other === undefined ? undefined : own - other;
  switch (rule.kind) {
    case 'at-most': {
      const ratios = rule.of.flatMap((other) => summary.ratio(system, other, metric) ?? []);
      // The best of several is the one that ours is the largest multiple of.
      return ratios.length === 0 ? undefined : Math.max(...ratios);
    }
    case 'less-by':
      return summary.ratio(rule.of, system, metric);
    case 'beyond':
      return less(summary.spread(rule.of, metric)?.median);
    case 'above':
      return less(summary.spread(system, rule.metric)?.median);
    case 'times': {
      const other = summary.spread(system, rule.metric)?.median;
      return other === undefined ? undefined : own / other;
    }
    case 'absolute':
      return own;
    default:
      return rule satisfies never;
  }
}

function bar(scenario: string, text: string, system: string, metric: string, rule: Rule): Bar {
  return { scenario, text, system, metric, rule };
}

function atMost(limit: number, ...of: string[]): Rule {
  return { kind: 'at-most', of, limit };
}

function lessBy(limit: number, of: string): Rule {
  return { kind: 'less-by', of, limit };
}
