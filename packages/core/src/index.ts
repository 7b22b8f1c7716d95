export {
  type CheckedAppend,
  checkAppend,
  checkTopic,
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
  Sink,
  Start,
} from './broker.ts';
export { type Clock, delay, systemClock } from './clock.ts';
export { describe } from './describe.ts';
export { BROKER_ERROR_CODES, BrokerError, type BrokerErrorCode, isBrokerError } from './errors.ts';
export { Feed, type FeedRequest } from './feed.ts';
export type { FeedGap, FeedOptions, Snapshot } from './feed-options.ts';
export { FeedReader } from './feed-reader.ts';
export { FeedRefusal } from './feed-refusal.ts';
export type { FeedFrame } from './feed-session.ts';
export {
  type Attributes,
  type Logger,
  type Meter,
  type Observer,
  resolveObserver,
} from './observer.ts';
export { functionOption, integerOption, refuseOption } from './option-check.ts';
export { EPOCH_PATTERN, newEpoch, type Position, samePosition } from './position.ts';
export type { EncodedRun, FrameEncoder, PushTarget } from './push-target.ts';
export { type Outlet, type Scheduler, scheduler } from './scheduler.ts';
export type { EntrySlot, FeedEntry } from './slot.ts';
export type { StandardSchema } from './standard-schema.ts';
