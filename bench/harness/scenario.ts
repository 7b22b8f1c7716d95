import type { Load } from '../load/main.ts';
import type { CallsApi } from './calls-api.ts';
import type { Child } from './child.ts';
import type { Pair } from './pair.ts';
import type { Sizes } from './sizes.ts';
import type { SystemOptions } from './system.ts';

/** The figures of one run, by name. */
export type Metrics = Readonly<Record<string, number>>;

/** One figure in a scenario's table. */
export interface Column {
  readonly metric: string;
  readonly title: string;
}

/** One job that every system does. */
interface Job {
  readonly name: string;
  readonly title: string;
  /** By name, in the order of the table. */
  readonly systems: readonly string[];
  /** Those that bars need: all that `--quick` and `--bars` run. */
  readonly barSystems: readonly string[];
  /** What others are compared with, in the first column. */
  readonly reference: string;
  /** The first is the one that is compared. */
  readonly columns: readonly Column[];
}

/** A job of a server and its clients. The systems are files of `peers/systems/`. */
export interface ServedScenario extends Job {
  readonly load: Load;
  readonly options?: SystemOptions;
  run(pair: Pair, sizes: Sizes): Promise<Metrics>;
}

/** A job of one process, without server and Redis. The systems are kinds of calls in `peers/calls.mjs`. */
export interface CalledScenario extends Job {
  call(child: Child<CallsApi>, sizes: Sizes): Promise<Metrics>;
}

export type Scenario = ServedScenario | CalledScenario;

/** The entry of most scenarios. */
export const SMALL: Load = { bytes: 200, shape: 'filler' };
