/** What the server process answers to, beside serving. */
export interface ServerApi {
  /** Collects garbage, and answers what is left: the heap and what it holds outside, in bytes. */
  memory(argument: undefined): Promise<number>;
  /** Starts to watch for pauses of the event loop. Not on otherwise: the watch itself costs CPU. */
  watchPauses(argument: undefined): Promise<void>;
  /** Answers the longest pause since, and the longest of the garbage collector, in milliseconds. */
  longestPause(argument: undefined): Promise<{ readonly pauseMs: number; readonly gcMs: number }>;
}
