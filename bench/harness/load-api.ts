/** What was delivered so far, and what was wrong with it. */
export interface Tally {
  readonly deliveries: number;
  readonly lost: number;
  readonly repeated: number;
}

/** Latencies of a steady stretch in milliseconds, from the call that publishes to the frame at the client. */
export interface Latency {
  readonly count: number;
  readonly expected: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** How a group of clients that was away caught up. Milliseconds since the first connected. */
export interface CatchUp {
  readonly deliveries: number;
  readonly expected: number;
  /** When half and all of the clients had all they had missed. */
  readonly p50: number;
  readonly allMs: number;
}

/** What the load process answers to. */
export interface LoadApi {
  /** Connects clients until there are `count`, over so many topics, and waits until each is subscribed. */
  connect(argument: { readonly count: number; readonly topics: number }): Promise<void>;
  /** Publishes until every client has got something: `subscribed` alone does not prove that entries flow. */
  prime(argument: undefined): Promise<void>;
  tally(argument: undefined): Promise<Tally>;
  /** Keeps at most `window` entries under way, `burst` of them published at a time. */
  saturate(argument: { readonly window: number; readonly burst: number }): Promise<void>;
  /** Stops that, waits for the rest, and answers how many deliveries never came. */
  stop(argument: undefined): Promise<{ readonly missing: number }>;
  /** Publishes at a rate, in entries a second, to all topics in turn. */
  steady(argument: { readonly rate: number; readonly seconds: number }): Promise<Latency>;
  /** Disconnects all clients, and publishes entries that they miss. */
  miss(argument: { readonly entries: number }): Promise<void>;
  /** Connects that many of them again, all at once, and waits until each has what it missed. Then disconnects them. */
  resume(argument: { readonly clients: number }): Promise<CatchUp>;
}
