/** How many times the usual runs of a property: 1, or what `pnpm soak` sets. */
export const SOAK: number = Number(process.env.SOAK ?? 1);

/** Scales the `numRuns` of a property: `{ numRuns: soaked(1000) }`. */
export function soaked(runs: number): number {
  return runs * SOAK;
}
