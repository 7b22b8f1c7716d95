import { setTimeout as sleep } from 'node:timers/promises';
import { Pair } from './pair.ts';
import { cpuUs, machineBusyUs } from './proc.ts';
import type { RedisServer } from './redis-server.ts';
import type { Metrics, Scenario } from './scenario.ts';
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
  { redis, sizes, profileDir }: RunnerOptions,
): Promise<Run> {
  const run = { scenario: scenario.name, system, repeat, at: new Date().toISOString() };
  try {
    await using pair = await Pair.open({
      redis,
      system,
      options: scenario.options ?? {},
      load: scenario.load,
      profileDir,
    });
    // A server that ends would leave its clients waiting.
    const metrics = await Promise.race([scenario.run(pair, sizes), pair.server.failed]);
    return { ...run, metrics };
  } catch (error) {
    return { ...run, metrics: {}, error: error instanceof Error ? error.message : String(error) };
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
