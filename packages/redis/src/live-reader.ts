import { BrokerError, type Position } from '@brokerfeed/core';
import type { Commands } from './commands.ts';
import { type CommitNotice, readNotice } from './commit-codec.ts';
import type { Connection } from './connection.ts';
import type { ResolvedOptions } from './options.ts';
import { outcomeOf, toBrokerError } from './redis-error.ts';
import type { Server, Servers } from './servers.ts';
import { TopicChecks } from './topic-checks.ts';

/** Hears of one topic. Its methods never throw. */
export interface WatchEvents {
  /** What was announced in one turn, in order; undefined for something that is no notice. */
  announced(announcements: readonly (CommitNotice | undefined)[]): void;
  /** The topic does not end where it was read to, and nobody has announced that. */
  moved(): void;
  /** The watch is over. */
  broken(error: BrokerError): void;
}

/** Hears one channel. Its methods never throw. */
export interface Ear {
  heard(text: string): void;
  /** It hears no more. */
  broken(error: BrokerError): void;
}

/** One reading of one topic. */
export interface Watch {
  /** Where it has read to, while it waits for more; undefined while the log is asked. */
  at: Position | undefined;
  /** Stops it; no event comes after. */
  end(): void;
}

/** A watch, as those see it who look after it. */
export interface Place extends Watch {
  readonly key: string;
  readonly events: WatchEvents;
  /** When the topic was last heard of, or asked after with the same effect. */
  heardAt: number;
  /** When it was last known that what was read is what the log holds. */
  provedAt: number;
  /** Since when it is asked after often, for a while: somebody writes to it and does not announce it. */
  hastyAt: number | undefined;
}

interface Channel {
  phase: 'joining' | 'joined';
  /** Settles when the server has confirmed the subscription, or will not. */
  readonly joined: Promise<void>;
  settle(error?: BrokerError): void;
  readonly key: string;
  readonly places: Set<Place>;
  /** Those that take what is said as it is. */
  readonly ears: Set<Ear>;
  /** What was announced in this turn. */
  arrived: (CommitNotice | undefined)[];
}

/** A reader outlives its last topic by this: the next may come in a moment. */
const LINGER_MS = 1_000;

const SETTLED: Promise<void> = Promise.resolve();

/** One connection to one server, subscribed to the channels of the topics that are read live there. */
export class LiveReader {
  readonly server: Server;
  readonly #options: ResolvedOptions;
  readonly #servers: Servers;
  readonly #onEnd: (error: BrokerError) => void;
  readonly #channels = new Map<string, Channel>();
  readonly #abort = new AbortController();
  readonly #checks: TopicChecks;
  readonly #done: Promise<void>;
  #arrivals: Channel[] = [];
  #connection: Connection | undefined;
  #cancelLinger: (() => void) | undefined;
  #movedAway = 0;

  /** Connects. `onEnd` is called once, when it takes no more topics. */
  constructor(
    server: Server,
    options: ResolvedOptions,
    servers: Servers,
    commands: Commands,
    onEnd: (error: BrokerError) => void,
  ) {
    this.server = server;
    this.#options = options;
    this.#servers = servers;
    this.#onEnd = onEnd;
    this.#checks = new TopicChecks(options, servers, commands, {
      places: () => this.#places(),
      topics: () => this.#channels.size,
      announcements: () => this.#someAnnouncements(),
      ping: async () => this.#connection?.redis.ping(),
      serverId: () => this.#connection?.serverId,
      fail: (error) => this.#fail(error),
      signal: this.#abort.signal,
    });
    this.#done = this.#run();
  }

  /** Reads a topic live. Resolves when whatever is announced from then on will be heard; rejects where that cannot be. */
  async watch(key: string, events: WatchEvents): Promise<Watch> {
    const channel = this.#channels.get(key) ?? this.#join(key);
    const now = this.#options.clock.now();
    const end = (): void => this.#leave(channel, place);
    const times = { heardAt: now, provedAt: now, hastyAt: undefined };
    const place: Place = { key, events, at: undefined, end, ...times };
    channel.places.add(place);
    await channel.joined;
    return place;
  }

  /** Hears a channel. Resolves, with what ends it, when whatever is said from then on will be heard. */
  async listen(name: string, ear: Ear): Promise<() => void> {
    const channel = this.#channels.get(name) ?? this.#join(name);
    channel.ears.add(ear);
    await channel.joined;
    return () => {
      if (channel.ears.delete(ear)) this.#leaveWhenEmpty(channel);
    };
  }

  /** Ends every watch with an error, and the connection. */
  close(error: BrokerError): Promise<void> {
    this.#fail(error);
    return this.#done;
  }

  async #run(): Promise<void> {
    const { replyTimeoutMs: silenceMs } = this.#options;
    const { signal } = this.#abort;
    let connection: Connection | undefined;
    try {
      connection = await this.server.connect({
        name: 'brokerfeed-reader',
        silenceMs,
        signal,
        // Live reads wait with it, and go on as soon as it is there.
        loading: 'wait',
      });
      const { redis } = connection;
      const ended = new Promise<void>((resolve) => {
        redis.once('end', resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
        if (signal.aborted || redis.status === 'end') resolve();
      });
      redis.on('smessage', (key, text) => this.#hear(key, text));
      redis.on('moved', () => this.#unsubscribed());
      this.#connection = connection;
      for (const channel of this.#channels.values()) void this.#subscribe(connection, channel);
      this.#lingerWhenEmpty();
      void this.#checks.run();
      await ended;
      this.#end(signal.aborted ? signal.reason : unavailable('the connection was lost'));
    } catch (error) {
      if (!signal.aborted) this.#servers.heard(error, this.server);
      this.#end(signal.aborted ? signal.reason : toBrokerError(error, 'a live read'));
    } finally {
      await connection?.close();
    }
  }

  #join(key: string): Channel {
    let settle: Channel['settle'] = () => {};
    const joined = new Promise<void>((resolve, reject) => {
      settle = (error) => (error === undefined ? resolve() : reject(error));
    });
    const channel: Channel = {
      key,
      phase: 'joining',
      joined,
      settle,
      places: new Set(),
      ears: new Set(),
      arrived: [],
    };
    this.#channels.set(key, channel);
    this.#cancelLinger?.();
    if (this.#connection !== undefined) void this.#subscribe(this.#connection, channel);
    return channel;
  }

  async #subscribe({ redis }: Connection, channel: Channel): Promise<void> {
    try {
      await redis.ssubscribe(channel.key);
      channel.phase = 'joined';
      channel.settle();
    } catch (error) {
      this.#servers.heard(error, this.server);
      if (outcomeOf(error) === 'redirected') this.#movedAway -= 1;
      if (this.#channels.get(channel.key) === channel) this.#channels.delete(channel.key);
      channel.settle(toBrokerError(error, 'a live read'));
      this.#lingerWhenEmpty();
    }
  }

  /**
   * The server has ended a subscription, since a cluster moved its slot: which, ioredis does not say, so all are looked for
   * anew. It says the same of a subscription that is refused with MOVED, and that is told already.
   */
  #unsubscribed(): void {
    this.#movedAway += 1;
    setImmediate(() => {
      if (this.#movedAway > 0) this.#fail(unavailable('its topics have moved to another server'));
    });
  }

  #leave(channel: Channel, place: Place): void {
    if (channel.places.delete(place)) this.#leaveWhenEmpty(channel);
  }

  #leaveWhenEmpty(channel: Channel): void {
    const { key, places, ears } = channel;
    if (places.size > 0 || ears.size > 0 || this.#channels.get(key) !== channel) return;
    this.#channels.delete(key);
    // Where the connection breaks instead, nothing is subscribed either.
    this.#connection?.redis.sunsubscribe(key).catch(() => {});
    this.#lingerWhenEmpty();
  }

  /** Hands over what came in one turn at once: a piece of the socket's stream holds many notices. */
  #hear(key: string, text: string): void {
    const channel = this.#channels.get(key);
    if (channel === undefined) return;
    if (channel.ears.size > 0) for (const ear of channel.ears) ear.heard(text);
    if (channel.places.size === 0) return;
    // A promise's job: queueMicrotask also makes an async resource, which costs more than all the rest of this.
    if (this.#arrivals.length === 0) void SETTLED.then(this.#handOver);
    if (channel.arrived.length === 0) this.#arrivals.push(channel);
    channel.arrived.push(readNotice(text));
  }

  readonly #handOver = (): void => {
    const now = this.#options.clock.now();
    const arrivals = this.#arrivals;
    this.#arrivals = [];
    for (const channel of arrivals) {
      const { arrived } = channel;
      channel.arrived = [];
      for (const place of channel.places) {
        place.heardAt = place.provedAt = now;
        place.events.announced(arrived);
      }
    }
  };

  #lingerWhenEmpty(): void {
    if (this.#channels.size > 0) return;
    this.#cancelLinger?.();
    this.#cancelLinger = this.#options.clock.after(LINGER_MS, () => {
      if (this.#channels.size === 0) this.#fail(unavailable('it has no topics'));
    });
  }

  #fail(error: BrokerError): void {
    this.#abort.abort(error);
    this.#end(this.#abort.signal.reason);
  }

  #end(error: BrokerError): void {
    this.#abort.abort(error);
    this.#cancelLinger?.();
    this.#onEnd(error);
    const channels = [...this.#channels.values()];
    this.#channels.clear();
    for (const { phase, settle, places, ears } of channels) {
      if (phase === 'joining') settle(error);
      else {
        for (const place of [...places]) place.events.broken(error);
        for (const ear of [...ears]) ear.broken(error);
      }
    }
  }

  #someAnnouncements(): string | undefined {
    for (const { key, ears } of this.#channels.values()) if (ears.size > 0) return key;
    return undefined;
  }

  *#places(): Iterable<Place> {
    for (const { phase, places } of this.#channels.values()) if (phase === 'joined') yield* places;
  }
}

function unavailable(why: string): BrokerError {
  return new BrokerError('UNAVAILABLE', `a live read failed: ${why}`);
}
