import { createHash } from 'node:crypto';
import { BrokerError, type Position } from '@brokerfeed/core';
import { IdempotencyKeys, keyScope, valuesDigest } from './idempotency-keys.ts';
import {
  type CarriedTopic,
  type CommitRecord,
  type ControlRecord,
  isCommit,
  type JournalRecord,
  type TopicCommit,
} from './record.ts';
import type { Segment } from './segment.ts';
import { TopicState } from './topic-state.ts';

const EPOCH_BYTES = 9;
const MAX_UNWRITTEN = 1_000;

/**
 * Everything that the records say, summed up. Live appends, recovery and `verify` apply the same records through the same
 * code, so that what is served is what would be recovered.
 */
export class JournalState {
  readonly journal: string;
  readonly topics: Map<string, TopicState> = new Map();
  /** The retained segments, oldest first. The last one may be active. */
  readonly segments: Segment[] = [];
  readonly keys: IdempotencyKeys;
  /** The sequence of the next record. */
  next = 1;
  /** From which the epochs of topics that were never written to are derived. */
  salt: string;
  /** Topics that were only read: a drop of another topic must not change their epoch while somebody may hold it. */
  readonly #unwritten = new Map<string, TopicState>();

  constructor(journal: string, keys: { windowMs: number; maxKeys: number }) {
    this.journal = journal;
    this.salt = journal;
    this.keys = new IdempotencyKeys(keys.windowMs, keys.maxKeys);
  }

  /** Finds a topic, or makes the state of one that was never written to. */
  topic(name: string): TopicState {
    const known = this.topics.get(name) ?? this.#unwritten.get(name);
    if (known !== undefined) return known;
    const topic = new TopicState(name, deriveEpoch(this.salt, name));
    this.#unwritten.set(name, topic);
    if (this.#unwritten.size > MAX_UNWRITTEN) {
      for (const oldest of this.#unwritten.keys()) {
        this.#unwritten.delete(oldest);
        break;
      }
    }
    return topic;
  }

  /** Finds a topic and keeps it, although it may never have been written to: it is about to be, or is followed. */
  keep(name: string): TopicState {
    const known = this.topics.get(name);
    if (known !== undefined) return known;
    const topic = this.topic(name);
    this.topics.set(name, topic);
    return topic;
  }

  /** Lets go of a topic that was kept and has not been written to. */
  unkeep(topic: TopicState): void {
    if (topic.planned > 0 || this.topics.get(topic.name) !== topic) return;
    this.topics.delete(topic.name);
    this.#unwritten.set(topic.name, topic);
  }

  /** Applies the next record, which stands at `offset` in a segment. Throws where it does not follow what came before. */
  apply(record: JournalRecord, segment: Segment, offset: number): void {
    if (record.seq !== this.next) {
      throw new BrokerError(
        'DAMAGED',
        `sequence ${this.next} is missing: ${record.seq} stands there`,
      );
    }
    if (isCommit(record)) this.#applyCommit(record, segment, offset);
    else this.#applyControl(record, segment);
    this.next = record.seq + 1;
    if (segment.last < segment.first) segment.firstAt = record.at;
    segment.last = record.seq;
    segment.lastAt = record.at;
  }

  #applyCommit(record: CommitRecord, segment: Segment, offset: number): void {
    for (const commit of record.commits) {
      const topic = this.#written(commit);
      if (commit.ordinal !== topic.last + 1) {
        throw new BrokerError(
          'DAMAGED',
          `commit ${topic.last + 1} of a topic is missing: ${commit.ordinal} stands there`,
        );
      }
      topic.extend(segment, commit.ordinal);
      if (commit.floor !== undefined) topic.trim(commit.floor);
      segment.entries += commit.values.length;
      segment.index?.add(topic.epoch, commit.ordinal, offset);
    }
    if (record.key !== undefined) this.#rememberKey(record, record.key);
  }

  /** The state of a topic that is written to. The first mention in a segment may stand for all that is gone before it. */
  #written(commit: TopicCommit): TopicState {
    const known = this.topics.get(commit.topic);
    if (known !== undefined && (commit.epoch === undefined || commit.epoch === known.epoch)) {
      return known;
    }
    if (known !== undefined && known.last > 0) {
      throw new BrokerError('DAMAGED', `a topic changes its epoch without having been dropped`);
    }
    if (commit.epoch === undefined) {
      throw new BrokerError('DAMAGED', `a topic's first commit in a segment names no epoch`);
    }
    const topic = new TopicState(commit.topic, commit.epoch);
    const floor = commit.ordinal - 1;
    topic.restore({ floor, floorBoot: commit.after ?? 0, last: floor, home: 0 });
    this.topics.set(commit.topic, topic);
    return topic;
  }

  #applyControl(record: ControlRecord, segment: Segment): void {
    if ('trim' in record) this.topics.get(record.trim)?.trim(record.floor);
    else if ('drop' in record) {
      this.topics.delete(record.drop);
      this.#unwritten.delete(record.drop);
      this.salt = record.salt;
    } else if ('carry' in record) {
      for (const carried of record.carry) this.#carry(carried, segment);
    } else if ('retire' in record) this.retire(record.retire);
    else record satisfies never;
  }

  #carry([name, epoch, ordinal, boot]: CarriedTopic, segment: Segment): void {
    let topic = this.topics.get(name);
    if (topic === undefined || topic.epoch !== epoch) {
      topic = new TopicState(name, epoch);
      this.topics.set(name, topic);
    }
    topic.runs.length = 0;
    topic.restore({ floor: ordinal, floorBoot: boot, last: ordinal, home: segment.first });
  }

  /** Lets go of the segments before one. Their files are the caller's. */
  retire(firstKept: number): void {
    while ((this.segments[0]?.first ?? firstKept) < firstKept) this.segments.shift();
    for (const topic of this.topics.values()) topic.retire(firstKept);
  }

  /** The first sequence of the oldest segment of which something can still be read. The newest counts always. */
  firstNeeded(): number {
    let needed = this.segments.at(-1)?.first ?? 0;
    for (const topic of this.topics.values()) {
      const oldest =
        topic.floor < topic.last ? topic.runs[topic.runOf(topic.floor + 1)] : undefined;
      needed = Math.min(needed, oldest?.segment.first ?? needed);
    }
    return needed;
  }

  /** The topics that would be forgotten with the segments before one, unless they are carried on. */
  carriedBy(firstKept: number): CarriedTopic[] {
    const carried: CarriedTopic[] = [];
    for (const topic of this.topics.values()) {
      if (topic.last === 0) continue;
      const newest = topic.runs.at(-1)?.segment.first ?? topic.home;
      if (newest < firstKept) {
        carried.push([topic.name, topic.epoch, topic.last, topic.bootOf(topic.last)]);
      }
    }
    return carried;
  }

  #rememberKey(record: CommitRecord, key: string): void {
    const [first] = record.commits;
    if (first === undefined) return;
    const scope = keyScope(record.all === true ? undefined : first.topic, key);
    const values =
      record.all === true
        ? record.commits.map((commit) => [commit.topic, commit.values])
        : first.values;
    this.keys.remember(scope, {
      digest: valuesDigest(values),
      at: record.at,
      sequence: record.seq,
      positions: record.commits.map((commit) => this.#positionOf(commit)),
    });
  }

  #positionOf(commit: TopicCommit): Position {
    return this.topic(commit.topic).position(commit.ordinal);
  }
}

/** The epoch of a topic before its first commit. Derived, so that reading never writes. */
export function deriveEpoch(salt: string, topic: string): string {
  const hash = createHash('sha256').update(`${salt}\0${topic}`).digest();
  return hash.subarray(0, EPOCH_BYTES).toString('base64url');
}
