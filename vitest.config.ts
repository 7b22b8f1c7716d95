import { defineConfig } from 'vitest/config';
import { CountReporter } from './test/support/count-reporter.ts';
import { SlowestFirst } from './test/support/slowest-first.ts';

const SOAK_FACTOR = 10;
const TEST_TIMEOUT_MS = 20_000;

export default defineConfig(({ mode }) => {
  // `pnpm soak` is `--mode soak`; SOAK=100 in the environment asks for another factor.
  const soak = Number(process.env.SOAK ?? (mode === 'soak' ? SOAK_FACTOR : 1));
  return {
    test: {
      include: ['packages/*/src/**/*.test.ts', 'packages/*/test/**/*.test.ts', 'test/**/*.test.ts'],
      globalSetup: ['test/support/global-setup.ts'],
      env: { SOAK: String(soak) },
      // Processes, not threads: tests open sockets, start servers and send signals. Two at a
      // time: they share one Redis, and must behave the same on small machines.
      pool: 'forks',
      maxWorkers: 2,
      // A process runs one file after another: to start one and load what is tested took a second of a core for each.
      // What a file does to its process it must undo.
      isolate: false,
      sequence: { sequencer: SlowestFirst },
      testTimeout: TEST_TIMEOUT_MS * soak,
      hookTimeout: TEST_TIMEOUT_MS,
      reporters: ['default', new CountReporter()],
    },
  };
});
