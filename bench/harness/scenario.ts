import type { Load } from '../load/main.ts';
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
export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** By name, in the order of the table. Names are files of `peers/systems/`. */
  readonly systems: readonly string[];
  /** Those that bars need: all that `--quick` and `--bars` run. */
  readonly barSystems: readonly string[];
  /** What others are compared with, in the first column. */
  readonly reference: string;
  /** The first is the one that is compared. */
  readonly columns: readonly Column[];
  readonly load: Load;
  readonly options?: SystemOptions;
  run(pair: Pair, sizes: Sizes): Promise<Metrics>;
}

/** The entry of most scenarios. */
export const SMALL: Load = { bytes: 200, shape: 'filler' };
