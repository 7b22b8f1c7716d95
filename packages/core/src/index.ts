export { announce } from './announce.ts';
export type { Announcement, AnnouncementReceiver, Announcer } from './announcer.ts';
export {
  type CheckedAppend,
  checkAppend,
  checkRetention,
  checkTopic,
  checkValue,
  headerBag,
  MAX_COMMIT_ENTRIES,
  MAX_TOPIC_BYTES,
  NO_HEADERS,
} from './append-check.ts';
export type {
  AppendOptions,
  Bounds,
  Broker,
  BrokerLog,
  Commit,
  Entry,
  Headers,
  Loss,
  Page,
  Retention,
  Sink,
  Start,
} from './broker.ts';
export {
  type Change,
  type ChangeAddress,
  type ChangedEntity,
  type ChangedRelation,
  changeOf,
  type EntityMutation,
  type Mutation,
  type RelationMutation,
} from './change.ts';
export type { ChangeListener } from './change-listeners.ts';
export {
  type Changes,
  type ChangesAppendOptions,
  type ChangesOptions,
  changes,
  type LocalChangesOptions,
  localChanges,
} from './changes.ts';
export { type Clock, delay, systemClock } from './clock.ts';
export { DefinedTopic, defineTopic, type TopicDefinition } from './define-topic.ts';
export { describe } from './describe.ts';
export { BROKER_ERROR_CODES, BrokerError, type BrokerErrorCode, isBrokerError } from './errors.ts';
export { Feed, type FeedRequest } from './feed.ts';
export { type FeedHealth, feedHealth } from './feed-health.ts';
export type { FeedGap, FeedOptions, Snapshot } from './feed-options.ts';
export type { FeedReader } from './feed-reader.ts';
export { FeedRefusal } from './feed-refusal.ts';
export type { FeedFrame } from './feed-session.ts';
export { Audience, LocalAnnouncer } from './local-announcer.ts';
export {
  type Attributes,
  type Logger,
  type Meter,
  type Observer,
  resolveObserver,
} from './observer.ts';
export { type OpenTelemetryMeter, openTelemetryMeter } from './open-telemetry.ts';
export { functionOption, integerOption, refuseOption } from './option-check.ts';
export { EPOCH_PATTERN, newEpoch, type Position, samePosition } from './position.ts';
export type { EncodedRun, FrameEncoder, PushTarget } from './push-target.ts';
export { type Outlet, type Scheduler, scheduler } from './scheduler.ts';
export { SealRefusal, type SealRefusalReason } from './seal.ts';
export type { SealKey, SealKeys } from './seal-keys.ts';
export { type SealedOptions, sealed } from './sealed.ts';
export type { EntrySlot, FeedEntry } from './slot.ts';
export type { StandardSchema } from './standard-schema.ts';
export {
  type AppendedAll,
  type CheckedTopicAppend,
  type CommitBroker,
  type CommitLog,
  checkAppendAll,
  isCommitLog,
  type TopicAppend,
} from './topic-commit.ts';
export {
  type MeasureTopicsOptions,
  type TopicMeasurement,
  TopicMeasurements,
} from './topic-measurements.ts';
export { Watch, watch } from './watch.ts';
export type {
  WatchClosed,
  WatchEmpty,
  WatchEvent,
  WatchedEntry,
  WatchItem,
  WatchLag,
  WatchTimeout,
} from './watch-event.ts';
export { WatchFeed, type WatchFeedOptions } from './watch-feed.ts';
export type { WatchOptions } from './watch-options.ts';
export { WatchReader } from './watch-reader.ts';
export { type WatchThenScanOptions, watchThenScan } from './watch-then-scan.ts';
