import { setTimeout as sleep } from 'node:timers/promises';
import type { CallsApi } from './calls-api.ts';
import { Child } from './child.ts';
import { Pair } from './pair.ts';
import { cpuUs, machineBusyUs } from './proc.ts';
import type { RedisServer } from './redis-server.ts';
import type { CalledScenario, Metrics, Scenario, ServedScenario } from './scenario.ts';
import type { Sizes } from './sizes.ts';

/** One run of one system in one scenario. */
export interface Run {
  readonly scenario: string;
  readonly system: string;
  readonly repeat: number;
  readonly at: string;
  readonly metrics: Metrics;
  /** Why there are no metrics. */
  readonly error?: string;
}

export interface RunnerOptions {
  readonly redis: RedisServer;
  readonly sizes: Sizes;
  readonly repeats: number;
  /** How long to wait for a machine that others keep busy, in milliseconds. */
  readonly patienceMs: number;
  readonly profileDir?: string | undefined;
  /** Sees each run as it ends. */
  onRun(run: Run): void;
}

/** CPU of others, as a share of one core, that is no noise. */
const CALM = 0.1;
const LOOK_MS = 500;

/** Runs the systems of a scenario one after another, and all of them again: what drifts, drifts for all. */
export async function runScenario(
  scenario: Scenario,
  systems: readonly string[],
  options: RunnerOptions,
): Promise<Run[]> {
  const runs: Run[] = [];
  for (let repeat = 0; repeat < options.repeats; repeat += 1) {
    for (let turn = 0; turn < systems.length; turn += 1) {
      // Each repeat starts with another one: nobody is always first.
      const system = systems[(turn + repeat) % systems.length] as string;
      await untilCalm(options.patienceMs);
      const run = await runOnce(scenario, system, repeat, options);
      runs.push(run);
      options.onRun(run);
    }
  }
  return runs;
}

async function runOnce(
  scenario: Scenario,
  system: string,
  repeat: number,
  options: RunnerOptions,
): Promise<Run> {
  const run = { scenario: scenario.name, system, repeat, at: new Date().toISOString() };
  try {
    const metrics =
      'call' in scenario
        ? await callOnce(scenario, system, options)
        : await serveOnce(scenario, system, options);
    return { ...run, metrics };
  } catch (error) {
    return { ...run, metrics: {}, error: error instanceof Error ? error.message : String(error) };
  }
}

async function serveOnce(
  scenario: ServedScenario,
  system: string,
  { redis, sizes, profileDir }: RunnerOptions,
): Promise<Metrics> {
  await using pair = await Pair.open({
    redis,
    system,
    options: scenario.options ?? {},
    load: scenario.load,
    profileDir,
  });
  // A server that ends would leave its clients waiting.
  return await Promise.race([scenario.run(pair, sizes), pair.server.failed]);
}

const CALLS = new URL('../peers/calls.mjs', import.meta.url);

async function callOnce(
  scenario: CalledScenario,
  system: string,
  { sizes }: RunnerOptions,
): Promise<Metrics> {
  const { child } = await Child.start<CallsApi>(CALLS, {
    args: [system],
    execArgv: ['--expose-gc'],
  });
  try {
    const reading = () => {
      const ours = cpuUs(child.pid) + cpuUs(process.pid);
      return { atMs: performance.now(), othersUs: machineBusyUs() - ours };
    };
    const from = reading();
    const metrics = await scenario.call(child, sizes);
    const to = reading();
    const others = (to.othersUs - from.othersUs) / 1000 / (to.atMs - from.atMs);
    return { ...metrics, others: Math.max(0, others) };
  } finally {
    await child.stop();
  }
}

/** Waits until others leave the machine alone, or for as long as asked. */
async function untilCalm(patienceMs: number): Promise<void> {
  const deadline = performance.now() + patienceMs;
  while (performance.now() < deadline) {
    const from = { busy: machineBusyUs(), own: cpuUs(process.pid) };
    await sleep(LOOK_MS);
    const others = machineBusyUs() - from.busy - (cpuUs(process.pid) - from.own);
    if (others / (LOOK_MS * 1000) < CALM) return;
  }
}
