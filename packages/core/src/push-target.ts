/** Turns a frame into the text that one transport sends. Feeds with the same encoder share what it made. */
export interface FrameEncoder {
  /**
   * Throws where the value cannot be written. `json` is the JSON text that the value was read from, where it is known and
   * nothing was changed since: an encoder that would write the same value may use it as it is.
   */
  encode(token: string, value: unknown, json?: string): string;
}

/** Frames in the order to be sent. */
export interface EncodedRun {
  readonly frames: readonly string[];
  /**
   * The bytes that targets made of these frames, for others that need the same: by whatever distinguishes them, such as a request id.
   * Undefined for frames that one target alone gets.
   */
  readonly assembled: Map<string, Uint8Array> | undefined;
}

/** A connection to which frames are pushed. Its methods never throw. */
export interface PushTarget {
  readonly encoder: FrameEncoder;
  /** Whether so much waits to be sent that no more should be written. */
  isFull(): boolean;
  /** Calls back once, when it is full no more. It need not where it is gone: then its carrier closes the feed. */
  whenWritable(callback: () => void): void;
  write(run: EncodedRun): void;
}
