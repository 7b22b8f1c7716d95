import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * The files that take more than five seconds, roughly as long ones first, and those with browsers not side by side. A file
 * that is not named here only comes later.
 */
const SLOWEST = [
  'test/demo.test.ts',
  'packages/redis/test/cluster-faults.test.ts',
  'packages/redis/test/sentinel.test.ts',
  'packages/redis/test/acl-tls.test.ts',
  'test/browser.test.ts',
  'test/drain-deploy.test.ts',
  'packages/journal/test/kill-storm.test.ts',
  'packages/journal/test/conformance.test.ts',
  'test/docs-code.test.ts',
  'test/browser-examples.test.ts',
  'test/faults-restart.test.ts',
  'test/faults-commands.test.ts',
  'test/faults-instances.test.ts',
  'test/faults-silence.test.ts',
  'packages/redis/test/faults.test.ts',
  'test/ws-slow.test.ts',
  'test/ws-fairness.test.ts',
  'test/outbox.test.ts',
  'test/sse-adapters.test.ts',
  'test/load-balancer.test.ts',
  'packages/redis/test/conformance.test.ts',
  'packages/conformance/test/memory-feed.test.ts',
  'packages/journal/test/crash-model.test.ts',
];

/**
 * Begins with the files that take longest, so that in the end no worker waits for the other. A machine that has run the
 * tests before knows how long each took; a fresh clone knows only how large they are, and the slowest are not.
 */
export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const rank = SLOWEST.findIndex((path) => moduleId.endsWith(path));
  return rank < 0 ? SLOWEST.length : rank;
}
