/** What the process of a kind of call answers to. */
export interface CallsApi {
  /** Measures one call: the nanoseconds it takes, and the bytes that it leaves to be collected. */
  measure(argument: {
    readonly calls: number;
    readonly rounds: number;
  }): Promise<{ readonly ns: number; readonly bytes: number }>;
}
