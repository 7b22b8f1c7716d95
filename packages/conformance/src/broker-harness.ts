import {
  type Broker,
  type BrokerLog,
  type CommitBroker,
  type CommitLog,
  isCommitLog,
} from '@brokerfeed/core';
import { onTestFinished } from 'vitest';

/** A broker under test, and what the laws need to do behind its back. */
export interface BrokerHarness {
  readonly broker: Broker;
  /** Makes another broker object on the same store, as another instance of a service would. The suite closes it. */
  peer(): Promise<Broker>;
  /** Removes all but the newest commits of a topic, exactly, as retention would. */
  trim(topic: string, keepCommits: number): Promise<void>;
  /** Deletes a topic from the store. */
  drop(topic: string): Promise<void>;
  /**
   * Where the store keeps the topics of `broker` apart, so that it refuses commits across them: makes one on the same store
   * that keeps its topics together. The suite closes it.
   */
  together?(): Promise<CommitBroker>;
  /** Closes the broker and removes the store. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** What each law is given: one store, seen by two instances. */
export interface Subject {
  readonly harness: BrokerHarness;
  readonly log: BrokerLog;
  readonly peerLog: BrokerLog;
}

/** Answers the subject of the suite; to be called inside a test. */
export type GetSubject = () => Subject;

/** Makes a topic name that no other test uses, so that one store serves a whole suite. */
export function freshTopic(label = 'law'): string {
  return `${label}-${crypto.randomUUID()}`;
}

/** Answers two instances that take commits across topics, for one test; undefined where the broker takes none. */
export async function commitSubject({
  harness,
  log,
  peerLog,
}: Subject): Promise<{ broker: CommitBroker; log: CommitLog; peerLog: CommitLog } | undefined> {
  if (harness.together === undefined) {
    if (!isCommitLog(log) || !isCommitLog(peerLog)) return undefined;
    // The log that was looked at is the broker's.
    return { broker: harness.broker as CommitBroker, log, peerLog };
  }
  const [broker, peer] = [await harness.together(), await harness.together()];
  onTestFinished(async () => {
    await Promise.all([broker.close(), peer.close()]);
  });
  return { broker, log: broker.log, peerLog: peer.log };
}
