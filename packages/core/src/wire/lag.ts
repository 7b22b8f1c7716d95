/**
 * The value of a frame of a watch that stands where events are missing: read again what the events only point at. `missed`
 * is how many, where somebody can tell. The first frame of each watch is one: all that came before is missing, and all that
 * comes after will be told.
 */
export interface FeedLag {
  readonly feed: 'lagged';
  readonly missed?: number;
}
