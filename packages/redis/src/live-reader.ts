import type { BrokerError, Position } from '@brokerfeed/core';
import type { Commands } from './commands.ts';
import type { StreamEntry } from './commit-codec.ts';
import { type Connection, connect } from './connection.ts';
import type { ResolvedOptions } from './options.ts';
import { toBrokerError } from './redis-error.ts';
import { compareIds } from './stream-id.ts';
import { TIPS } from './tips-script.ts';
import { Wake } from './wake.ts';

/** Hears of one topic. Its methods never throw. */
export interface WatchEvents {
  /** What Redis holds after `after`, in order. Moves `after`, or ends the watch. */
  entries(entries: readonly StreamEntry[]): void;
  /**
   * Nothing was heard for about `blockMs`, and the topic does not end where it was read to: XREAD does not tell a quiet
   * topic from one that is gone.
   */
  moved(): void;
  /** The watch is over. */
  broken(error: BrokerError): void;
}

/** One reading of one topic. */
export interface Watch {
  /** The id after which it reads on. */
  after: string;
  /** Stops it; no event comes after. */
  end(): void;
}

interface Place extends Watch {
  readonly key: string;
  readonly epoch: string;
  readonly events: WatchEvents;
  provedAt: number;
}

const MAX_COUNT = 512;
const REPLY_BYTES = 1024 * 1024;
/** A reader outlives its last topic by this: one that is asked after by the page script comes back in a moment. */
const LINGER_MS = 1_000;

/**
 * One connection with a blocking XREAD over the topics watched on it. A topic that joins is read at once: CLIENT UNBLOCK
 * ends the XREAD under way. One that leaves is not worth that, apart from the last; what is still read for it is dropped.
 */
export class LiveReader {
  readonly #options: ResolvedOptions;
  readonly #commands: Commands;
  readonly #onEnd: (reader: LiveReader) => void;
  readonly #topics = new Map<string, Set<Place>>();
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;
  #wake: Wake | undefined;
  #joined: ((joined: boolean) => void) | undefined;
  /** Commits of each topic asked for at a time, so that a reply stays near `REPLY_BYTES`. */
  #count = 64;

  /** Connects. `onEnd` is called once, when it takes no more topics. */
  constructor(options: ResolvedOptions, commands: Commands, onEnd: (reader: LiveReader) => void) {
    this.#options = options;
    this.#commands = commands;
    this.#onEnd = onEnd;
    this.#done = this.#run();
  }

  /** How many topics it reads. */
  get topics(): number {
    return this.#topics.size;
  }

  reads(key: string): boolean {
    return this.#topics.has(key);
  }

  /** Reads a topic from a position on. */
  watch(key: string, from: Position, events: WatchEvents): Watch {
    const places = this.#topics.get(key) ?? new Set<Place>();
    this.#topics.set(key, places);
    const end = (): void => {
      places.delete(place);
      if (places.size > 0 || this.#topics.get(key) !== places) return;
      this.#topics.delete(key);
      if (this.#topics.size === 0) this.#wake?.now();
    };
    const { epoch, id: after } = from;
    const place: Place = { key, epoch, after, end, events, provedAt: this.#options.clock.now() };
    places.add(place);
    this.#joined?.(true);
    this.#wake?.now();
    return place;
  }

  /** Ends every watch with an error, and the connection. */
  close(error: BrokerError): Promise<void> {
    this.#abort.abort(error);
    return this.#done;
  }

  async #run(): Promise<void> {
    const { client, blockMs, replyTimeoutMs } = this.#options;
    const { signal } = this.#abort;
    let connection: Connection | undefined;
    const disconnect = (): void => {
      this.#joined?.(false);
      void connection?.close();
    };
    signal.addEventListener('abort', disconnect);
    try {
      const silenceMs = blockMs + replyTimeoutMs;
      connection = await connect(client, { name: 'brokerfeed-reader', silenceMs, signal });
      while (!signal.aborted && (this.#topics.size > 0 || (await this.#someoneJoins()))) {
        await this.#poll(connection);
      }
      this.#end(signal.reason);
    } catch (error) {
      this.#end(signal.aborted ? signal.reason : toBrokerError(error, 'a live read'));
    } finally {
      signal.removeEventListener('abort', disconnect);
      await connection?.close();
    }
  }

  async #poll({ redis, clientId, serverId }: Connection): Promise<void> {
    const keys: string[] = [];
    const ids: string[] = [];
    for (const [key, places] of this.#topics) {
      keys.push(key);
      ids.push(lowest(places));
    }
    const wake = new Wake(this.#commands, this.#options, clientId, serverId);
    this.#wake = wake;
    try {
      const { blockMs } = this.#options;
      const reply = await redis.call(
        'XREAD',
        'COUNT',
        this.#count,
        'BLOCK',
        blockMs,
        'STREAMS',
        ...keys,
        ...ids,
      );
      // Typed unknown by ioredis: RESP2's reply of XREAD, or nothing after a full block or an UNBLOCK.
      this.#deliver((reply ?? []) as readonly (readonly [key: string, entries: StreamEntry[]])[]);
    } finally {
      this.#wake = undefined;
      wake.end();
    }
  }

  #deliver(reply: readonly (readonly [key: string, entries: readonly StreamEntry[]])[]): void {
    const now = this.#options.clock.now();
    let bytes = 0;
    for (const [key, entries] of reply) {
      bytes += sizeOf(entries);
      for (const place of [...(this.#topics.get(key) ?? [])]) {
        const fresh = entriesAfter(entries, place.after);
        if (fresh.length === 0) continue;
        place.provedAt = now;
        place.events.entries(fresh);
      }
    }
    this.#count =
      bytes > REPLY_BYTES ? Math.ceil(this.#count / 2) : Math.min(this.#count * 2, MAX_COUNT);
    // Somewhat less than a block: a topic on a quiet reader is asked after on each empty poll.
    const quietMs = this.#options.blockMs * 0.9;
    const quiet = this.#places().filter((place) => now - place.provedAt >= quietMs);
    for (const place of quiet) place.provedAt = now;
    if (quiet.length > 0) void this.#askAfter(quiet);
  }

  /** Asks after quiet topics, all with one command. */
  async #askAfter(places: readonly Place[]): Promise<void> {
    const asked = places.map(({ epoch, after }) => [epoch, after] as const);
    try {
      const keys = places.map(({ key }) => key);
      const reply = await this.#commands.run((redis) => TIPS.call(redis, keys, asked.flat()), {
        doing: 'a check of quiet topics',
        repeatable: true,
        signal: this.#abort.signal,
      });
      // Typed unknown by ioredis: what the script returns.
      for (const index of reply as number[]) {
        const place = places[index - 1];
        // What was read meanwhile is stronger than this answer.
        if (place === undefined || place.after !== asked[index - 1]?.[1]) continue;
        if (this.#topics.get(place.key)?.has(place)) place.events.moved();
      }
    } catch (error) {
      // The live read itself stands, and asks again; when it breaks, it says so.
      this.#options.observer.logger.debug({ err: error }, 'redis.check');
    }
  }

  #someoneJoins(): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(LINGER_MS, () => this.#joined?.(false));
      this.#joined = (joined) => {
        this.#joined = undefined;
        cancel();
        resolve(joined);
      };
    });
  }

  #end(error: BrokerError): void {
    this.#onEnd(this);
    const places = this.#places();
    this.#topics.clear();
    for (const place of places) place.events.broken(error);
  }

  #places(): Place[] {
    return [...this.#topics.values()].flatMap((places) => [...places]);
  }
}

function lowest(places: ReadonlySet<Place>): string {
  let lowest: string | undefined;
  for (const { after } of places) {
    if (lowest === undefined || compareIds(after, lowest) < 0) lowest = after;
  }
  return lowest as string;
}

/** Whoever joined while the XREAD was under way may stand further on than it read. */
function entriesAfter(entries: readonly StreamEntry[], after: string): readonly StreamEntry[] {
  const [first] = entries;
  if (first !== undefined && compareIds(first[0], after) > 0) return entries;
  return entries.filter(([id]) => compareIds(id, after) > 0);
}

function sizeOf(entries: readonly StreamEntry[]): number {
  let bytes = 0;
  for (const [, fields] of entries) for (const text of fields) bytes += text.length;
  return bytes;
}
