import type { BrokerError, Position } from '@brokerfeed/core';
import type { Commands } from './commands.ts';
import { LiveReader, type Watch, type WatchEvents } from './live-reader.ts';
import type { ResolvedOptions } from './options.ts';

/**
 * Topics of one blocking XREAD. Redis registers and unregisters every key at each wake: one XREAD over a thousand topics
 * costs it and us more than a connection for each would.
 */
const MAX_TOPICS = 64;

/** The live readers of a broker: as few connections as hold the topics. */
export class LiveReaders {
  readonly #options: ResolvedOptions;
  readonly #commands: Commands;
  readonly #readers = new Set<LiveReader>();

  constructor(options: ResolvedOptions, commands: Commands) {
    this.#options = options;
    this.#commands = commands;
  }

  /** Reads a topic from a position on. */
  watch(key: string, from: Position, events: WatchEvents): Watch {
    return this.#readerOf(key).watch(key, from, events);
  }

  /** Ends every watch with an error, and every connection. */
  async close(error: BrokerError): Promise<void> {
    await Promise.all([...this.#readers].map((reader) => reader.close(error)));
  }

  #readerOf(key: string): LiveReader {
    let free: LiveReader | undefined;
    for (const reader of this.#readers) {
      if (reader.reads(key)) return reader;
      if (reader.topics < MAX_TOPICS) free ??= reader;
    }
    if (free !== undefined) return free;
    const reader = new LiveReader(this.#options, this.#commands, (ended) =>
      this.#readers.delete(ended),
    );
    this.#readers.add(reader);
    return reader;
  }
}
