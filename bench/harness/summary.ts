import type { Run } from './runner.ts';
import type { Scenario } from './scenario.ts';
import { median } from './stats.ts';

/** The values of one figure over repeats. */
export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/** What is known of the runs of one scenario. */
export class Summary {
  readonly scenario: Scenario;
  readonly #runs: readonly Run[];

  constructor(scenario: Scenario, runs: readonly Run[]) {
    this.scenario = scenario;
    this.#runs = runs.filter((run) => run.scenario === scenario.name);
  }

  /** The systems that were run, in the order of the scenario. */
  get systems(): readonly string[] {
    const run = new Set(this.#runs.map(({ system }) => system));
    return this.scenario.systems.filter((system) => run.has(system));
  }

  values(system: string, metric: string): number[] {
    return this.#of(system).flatMap(({ metrics }) => metrics[metric] ?? []);
  }

  spread(system: string, metric: string): Spread | undefined {
    const values = this.values(system, metric);
    if (values.length === 0) return undefined;
    return { min: Math.min(...values), median: median(values), max: Math.max(...values) };
  }

  /** How one system's figure relates to another's: the median over repeats of the quotient within each. */
  ratio(system: string, to: string, metric: string): number | undefined {
    const others = new Map(this.#of(to).map(({ repeat, metrics }) => [repeat, metrics[metric]]));
    const ratios = this.#of(system).flatMap(({ repeat, metrics }) => {
      const own = metrics[metric];
      const other = others.get(repeat);
      return own === undefined || other === undefined ? [] : own / other;
    });
    return ratios.length === 0 ? undefined : median(ratios);
  }

  /** What stands beside a system's figures: what it did not deliver, and what disturbed it. */
  remarks(system: string): string[] {
    const remarks: string[] = [];
    for (const metric of ['lost', 'repeated', 'missing']) {
      const total = this.values(system, metric).reduce((sum, value) => sum + value, 0);
      if (total !== 0) remarks.push(`${total} ${metric}`);
    }
    const noisy = this.values(system, 'others').filter((share) => share > NOISE).length;
    if (noisy > 0) remarks.push(`disturbed ${noisy}x`);
    for (const { error } of this.#of(system)) {
      if (error !== undefined) remarks.push(`failed: ${error.split('\n')[0]}`);
    }
    return remarks;
  }

  #of(system: string): Run[] {
    return this.#runs.filter((run) => run.system === system);
  }
}

/** CPU of others, as a share of one core, above which a run is marked. */
const NOISE = 0.2;
