/** How large and how long the scenarios are. */
export interface Sizes {
  /** Clients of one topic. */
  readonly sockets: number;
  /** Clients over server-sent events. */
  readonly streams: number;
  /** Clients of the scenarios with large entries. */
  readonly fewSockets: number;
  readonly latencySockets: number;
  readonly warmMs: number;
  readonly measureMs: number;
  /** Saturating systems are measured over as many windows of entries at least. */
  readonly windows: number;
  readonly steadySeconds: number;
  readonly idleMs: number;
  readonly topics: number;
  /** Entries that one client missed, and how often it comes back. */
  readonly catchUp: { readonly entries: number; readonly rounds: number };
  /** Clients that missed the same entries; before them a few of them alone, or none. */
  readonly herd: { readonly clients: number; readonly few: number; readonly entries: number };
  /** Deliveries over which pauses are watched, and how long at most. */
  readonly pause: { readonly deliveries: number; readonly limitMs: number };
  readonly memorySubscribers: number;
  /** Calls of a round, where single calls are measured. */
  readonly calls: number;
}

const FULL: Sizes = {
  sockets: 1_000,
  streams: 300,
  fewSockets: 200,
  latencySockets: 200,
  warmMs: 3_000,
  measureMs: 5_000,
  windows: 2,
  steadySeconds: 8,
  idleMs: 8_000,
  topics: 1_000,
  catchUp: { entries: 10_000, rounds: 5 },
  herd: { clients: 1_000, few: 100, entries: 1_000 },
  pause: { deliveries: 3_000_000, limitMs: 30_000 },
  memorySubscribers: 8_000,
  calls: 20_000,
};

/** Sizes by name: `full` for figures to cite, `quick` for a look, `tiny` to see that the bench itself works. */
export const SIZES: Readonly<Record<'full' | 'quick' | 'tiny', Sizes>> = {
  full: FULL,
  quick: {
    ...FULL,
    warmMs: 1_000,
    measureMs: 2_000,
    streams: 200,
    steadySeconds: 3,
    idleMs: 2_000,
    catchUp: { entries: 10_000, rounds: 2 },
    herd: { ...FULL.herd, few: 0 },
  },
  tiny: {
    sockets: 50,
    streams: 20,
    fewSockets: 20,
    latencySockets: 20,
    warmMs: 300,
    measureMs: 500,
    windows: 1,
    steadySeconds: 1,
    idleMs: 500,
    topics: 30,
    catchUp: { entries: 1_000, rounds: 2 },
    herd: { clients: 30, few: 5, entries: 300 },
    pause: { deliveries: 50_000, limitMs: 1_500 },
    memorySubscribers: 100,
    calls: 2_000,
  },
};
