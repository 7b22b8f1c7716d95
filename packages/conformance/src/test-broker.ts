import { afterAll, beforeAll, describe } from 'vitest';
import { announcementLaws } from './announcement-laws.ts';
import { appendLaws } from './append-laws.ts';
import { boundaryLaws } from './boundary-laws.ts';
import type { BrokerHarness, Subject } from './broker-harness.ts';
import { changeLaws } from './change-laws.ts';
import { closeLaws } from './close-laws.ts';
import { commitLaws } from './commit-laws.ts';
import { followLaws } from './follow-laws.ts';
import { idempotencyLaws } from './idempotency-laws.ts';
import { logLaws } from './log-laws.ts';
import { lossLaws } from './loss-laws.ts';
import { modelLaws } from './model-laws.ts';
import { refusalLaws } from './refusal-laws.ts';
import { retentionLaws } from './retention-laws.ts';
import { verdictLaws } from './verdict-laws.ts';
import { watchLaws } from './watch-laws.ts';

/** The options of {@link testBroker}. */
export interface TestBrokerOptions {
  /**
   * Runs of each property test. The environment variable `SOAK` multiplies it.
   * @default 1000
   */
  readonly runs?: number;
  /**
   * How long one law may take, in milliseconds. Property tests get it for every hundred runs.
   * @default 20_000
   */
  readonly timeoutMs?: number;
}

const DEFAULT_RUNS = 1000;
const DEFAULT_TIMEOUT_MS = 20_000;
const RUNS_PER_TIMEOUT = 100;

/**
 * Declares a vitest suite that holds a broker to the laws of the seam. `make` is called once, before the first test, and
 * what it made is disposed after the last; every test has topics of its own.
 */
export function testBroker(
  name: string,
  make: () => Promise<BrokerHarness>,
  options: TestBrokerOptions = {},
): void {
  const runs = (options.runs ?? DEFAULT_RUNS) * soakFactor();
  const timeout = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const modelTimeout = timeout * Math.max(1, runs / RUNS_PER_TIMEOUT);

  describe(name, () => {
    let subject: Subject | undefined;
    let release = async (): Promise<void> => {};

    beforeAll(async () => {
      const harness = await make();
      release = () => harness[Symbol.asyncDispose]();
      const peer = await harness.peer();
      release = async () => {
        await peer.close();
        await harness[Symbol.asyncDispose]();
      };
      subject = { harness, log: harness.broker.log, peerLog: peer.log };
    });
    afterAll(() => release());

    const of = (): Subject => {
      if (subject === undefined) throw new Error('a law ran before its broker was made');
      return subject;
    };
    describe('append', { timeout }, () => appendLaws(of));
    describe('refused appends and names', { timeout }, () => refusalLaws(of));
    describe('idempotency keys', { timeout }, () => idempotencyLaws(of));
    describe('the boundary of a commit', { timeout }, () => boundaryLaws(of));
    describe('commits across topics', { timeout }, () => commitLaws(of));
    describe('retention of an append', { timeout }, () => retentionLaws(of));
    describe('pages', { timeout }, () => logLaws(of));
    describe('verdicts', { timeout }, () => verdictLaws(of));
    describe('live reads', { timeout }, () => followLaws(of));
    describe('losses of a live read', { timeout }, () => lossLaws(of));
    describe('watches', { timeout }, () => watchLaws(of));
    describe('announcements', { timeout }, () => announcementLaws(of));
    describe('changes of a store', { timeout }, () => changeLaws(of));
    describe('close', { timeout }, () => closeLaws(of));
    describe('against a model', { timeout: modelTimeout }, () => modelLaws(of, runs));
  });
}

function soakFactor(): number {
  const factor = Number(process.env.SOAK ?? 1);
  return Number.isInteger(factor) && factor > 0 ? factor : 1;
}
