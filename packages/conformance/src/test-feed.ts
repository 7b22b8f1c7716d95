import { afterAll, beforeAll, describe } from 'vitest';
import type { BrokerHarness, Subject } from './broker-harness.ts';
import { feedLaws } from './feed-laws.ts';

/** The options of {@link testFeed}. */
export interface TestFeedOptions {
  /**
   * Runs of the property test. The environment variable `SOAK` multiplies it.
   * @default 1000
   */
  readonly runs?: number;
  /**
   * How long a hundred runs may take, in milliseconds.
   * @default 20_000
   */
  readonly timeoutMs?: number;
}

const DEFAULT_RUNS = 1000;
const DEFAULT_TIMEOUT_MS = 20_000;
const RUNS_PER_TIMEOUT = 100;

/**
 * Declares a vitest suite that holds a feed on a broker to its promises: no silent gap, no duplicate within a connection,
 * order kept, repeats only inside a commit after a resume. `make` is called once; every run has a topic of its own.
 */
export function testFeed(
  name: string,
  make: () => Promise<BrokerHarness>,
  options: TestFeedOptions = {},
): void {
  const factor = Number(process.env.SOAK ?? 1);
  const runs =
    (options.runs ?? DEFAULT_RUNS) * (Number.isInteger(factor) && factor > 0 ? factor : 1);
  const timeout = (options.timeoutMs ?? DEFAULT_TIMEOUT_MS) * Math.max(1, runs / RUNS_PER_TIMEOUT);

  describe(name, { timeout }, () => {
    let subject: Subject | undefined;
    let release = async (): Promise<void> => {};

    beforeAll(async () => {
      const harness = await make();
      const peer = await harness.peer();
      release = async () => {
        await peer.close();
        await harness[Symbol.asyncDispose]();
      };
      subject = { harness, log: harness.broker.log, peerLog: peer.log };
    });
    afterAll(() => release());

    feedLaws(() => {
      if (subject === undefined) throw new Error('a law ran before its broker was made');
      return subject;
    }, runs);
  });
}
