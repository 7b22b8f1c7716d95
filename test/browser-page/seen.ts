/** What the page tells the tests, as `window.seen`. */
export interface Seen {
  /** Data of the feed, in order: numbers, and snapshots of them. */
  readonly values: (number | { readonly snapshot: readonly number[] })[];
  /** What the link told: `attached`, `gap trimmed`. */
  readonly states: string[];
  /** The statuses of errors that ended the subscription; 0 for none. */
  readonly errors: number[];
}
