/**
 * The benches: `pnpm bench [scenario …]`. Each scenario is done by brokerfeed, its peers and the limits, in turn.
 *
 *   --quick             the quicker of the systems that bars need, once, for a short time
 *   --bars              the systems that bars need, and the bars
 *   --systems a,b       only these
 *   --repeats N         default: 3, and 1 with --quick
 *   --size NAME         full, quick or tiny; tiny only shows that everything works
 *   --patience SECONDS  how long each run waits for a calm machine; default: 20
 *   --profile DIR       writes a CPU profile of each server there
 *   --out FILE          default: bench/results/<time>.json
 *   --no-build          measures the packages as they were last built
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { BARS, barTable, judge } from './harness/bars.ts';
import { machine } from './harness/machine.ts';
import { build, installPeers, peerVersions, placePackages } from './harness/ours.ts';
import { RedisServer } from './harness/redis-server.ts';
import { type Run, runScenario } from './harness/runner.ts';
import type { Scenario } from './harness/scenario.ts';
import { SIZES } from './harness/sizes.ts';
import { Summary } from './harness/summary.ts';
import { tableOf } from './harness/table.ts';
import { SCENARIOS } from './scenarios/index.ts';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    bars: { type: 'boolean', default: false },
    systems: { type: 'string' },
    repeats: { type: 'string' },
    size: { type: 'string' },
    patience: { type: 'string', default: '20' },
    profile: { type: 'string' },
    out: { type: 'string' },
    'no-build': { type: 'boolean', default: false },
  },
});

/** What `--quick` leaves out: they take long, and change rarely. */
const SLOW: ReadonlySet<string> = new Set(['topics', 'memory', 'pause']);
const SLOW_SYSTEMS: ReadonlySet<string> = new Set(['trpc-reader']);

// A signal must end Redis and the children too, which are ended on exit.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

const startedAt = new Date().toISOString();
const sizeName = flags.size ?? (flags.quick ? 'quick' : 'full');
const sizes = SIZES[sizeName as keyof typeof SIZES];
if (sizes === undefined) throw new Error(`--size: full, quick or tiny, not ${sizeName}`);
const repeats = Number(flags.repeats ?? (flags.quick ? 1 : 3));
const out = resolve(flags.out ?? `bench/results/${startedAt.replaceAll(':', '-')}.json`);

installPeers();
if (!flags['no-build']) build();
placePackages();

const scenarios = pickScenarios();
const setting = {
  startedAt,
  machine: machine(),
  peers: peerVersions(),
  size: sizeName,
  sizes,
  repeats,
};
const runs: Run[] = [];
await using redis = await RedisServer.start();
for (const scenario of scenarios) {
  console.log(`\n${scenario.name}: ${scenario.title}`);
  await runScenario(scenario, pickSystems(scenario), {
    redis,
    sizes,
    repeats,
    patienceMs: Number(flags.patience) * 1000,
    profileDir: flags.profile === undefined ? undefined : resolve(flags.profile),
    onRun(run) {
      runs.push(run);
      console.log(`  ${run.repeat + 1} ${run.system}: ${lineOf(scenario, run)}`);
      save();
    },
  });
}

console.log(
  `\n${startedAt.slice(0, 10)}, ${sizeName}, ${repeats} repeats: ${Object.entries(setting.machine).flat().join(' ')}`,
);
const summaries = scenarios.map((scenario) => new Summary(scenario, runs));
for (const summary of summaries) console.log(`\n${tableOf(summary)}`);
const verdicts = judge(summaries);
if (verdicts.length > 0) console.log(`\n### bars\n\n${barTable(verdicts)}`);
console.log(`\n${out}`);

function save(): void {
  const result = {
    ...setting,
    bars: judge(scenarios.map((scenario) => new Summary(scenario, runs))),
    runs,
  };
  mkdirSync(dirname(out), { recursive: true });
  writeFileSync(out, `${JSON.stringify(result, undefined, 2)}\n`);
}

function pickScenarios(): readonly Scenario[] {
  for (const name of positionals) {
    if (SCENARIOS.every((scenario) => scenario.name !== name)) {
      throw new Error(`no scenario "${name}": ${SCENARIOS.map((one) => one.name).join(', ')}`);
    }
  }
  if (positionals.length > 0) return SCENARIOS.filter(({ name }) => positionals.includes(name));
  if (!flags.quick && !flags.bars) return SCENARIOS;
  const barred = new Set(BARS.map(({ scenario }) => scenario));
  return SCENARIOS.filter(({ name }) => barred.has(name) && !(flags.quick && SLOW.has(name)));
}

function pickSystems({ systems, barSystems }: Scenario): readonly string[] {
  const asked = flags.systems?.split(',');
  if (asked !== undefined) return systems.filter((system) => asked.includes(system));
  if (flags.quick) return barSystems.filter((system) => !SLOW_SYSTEMS.has(system));
  return flags.bars ? barSystems : systems;
}

/** One line while it runs: the figures of the table, and what went wrong. */
function lineOf({ columns }: Scenario, { metrics, error }: Run): string {
  if (error !== undefined) return `failed: ${error}`;
  const names = [...columns.map(({ metric }) => metric), 'lost', 'repeated', 'missing', 'others'];
  return names
    .flatMap((name) => {
      const value = metrics[name];
      return value === undefined ? [] : `${name} ${Number(value.toPrecision(3))}`;
    })
    .join(' · ');
}
