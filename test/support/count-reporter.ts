import type { Reporter, SerializedError, TestModule } from 'vitest/node';

/** Ends the run's output with `N passed, N failed`, on a line of its own, for machines to read. */
export class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    for (const module of modules) {
      // A file or group that breaks outside its tests has no failed test to show for it.
      count.failed += module.errors().length;
      for (const suite of module.children.allSuites()) count.failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        // Pending at the end of the run: it was interrupted.
        count[state === 'pending' ? 'failed' : state]++;
      }
    }
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : '';
    process.stdout.write(`\n${count.passed} passed, ${count.failed} failed${skipped}\n`);
  }
}
