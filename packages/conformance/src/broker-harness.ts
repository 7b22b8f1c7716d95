import type { Broker, BrokerLog } from '@brokerfeed/core';

/** A broker under test, and what the laws need to do behind its back. */
export interface BrokerHarness {
  readonly broker: Broker;
  /** Makes another broker object on the same store, as another instance of a service would. The suite closes it. */
  peer(): Promise<Broker>;
  /** Removes all but the newest commits of a topic, exactly, as retention would. */
  trim(topic: string, keepCommits: number): Promise<void>;
  /** Deletes a topic from the store. */
  drop(topic: string): Promise<void>;
  /** Whether the store keeps topics apart, so that the broker refuses commits across them. */
  readonly keepsTopicsApart?: boolean;
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
