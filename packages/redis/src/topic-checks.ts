import { BrokerError, type Clock, delay, type Position } from '@brokerfeed/core';
import type { Redis } from 'ioredis';
import type { Commands } from './commands.ts';
import { elapsed } from './elapsed.ts';
import type { Place } from './live-reader.ts';
import type { ResolvedOptions } from './options.ts';
import { requirePrimary } from './primary.ts';
import { outcomeOf, toBrokerError } from './redis-error.ts';
import type { Servers } from './servers.ts';
import { TIPS } from './tips-script.ts';

/** The live connection, as its checks need it. */
export interface CheckedReader {
  /** The topics that are subscribed to. */
  places(): Iterable<Place>;
  /** How many. */
  topics(): number;
  /** A channel of announcements, if there is one: no topic is asked after for those. */
  announcements(): string | undefined;
  /** Resolves when all that the server sent before its answer was heard. */
  ping(): Promise<unknown>;
  /** The process at the other end. */
  serverId(): string | undefined;
  /** Gives the connection up. */
  fail(error: BrokerError): void;
  /** Aborts when there is nothing more to check. */
  readonly signal: AbortSignal;
}

/** A topic, and where it was read to when it was asked after. */
interface Asked {
  readonly place: Place;
  readonly at: Position;
}

/** Asks after topics with one command, and answers which do not end where they were read to. */
type Question = (redis: Redis, asked: readonly Asked[]) => Promise<readonly Asked[]>;

/**
 * How often a topic of which nothing was heard is asked after: whether there is something that nobody announced. Of many
 * topics each has its turn less often, so that being idle costs no more than so many in a second.
 */
const ROUND_MS = 1_000;
const TOPICS_PER_ROUND = 500;
/** How often one is asked after of which that was so, and for how long after the last such commit. */
const HASTE_MS = 50;
const HASTY_FOR_MS = 1_000;
/** Timers are early and late: what is nearly due is asked after now, not a round later. */
const NEARLY = 0.9;
/** Topics of one command: Redis does nothing else meanwhile. For tips it copies the first and the last commit of each. */
const MAX_READ_KEYS = 500;
const MAX_TIPS_KEYS = 20;

/**
 * Finds what no notice tells: commits of a bare XADD, and of writers who may not publish; topics deleted, flushed or
 * rolled back; and a connection to a server that is not the primary any more, where nothing is announced.
 */
export class TopicChecks {
  readonly #options: ResolvedOptions;
  readonly #clock: Clock;
  readonly #servers: Servers;
  readonly #commands: Commands;
  readonly #reader: CheckedReader;
  #startedAt = 0;
  #roundAt = 0;
  #pingAt = 0;

  constructor(
    options: ResolvedOptions,
    servers: Servers,
    commands: Commands,
    reader: CheckedReader,
  ) {
    this.#options = options;
    this.#clock = options.clock;
    this.#servers = servers;
    this.#commands = commands;
    this.#reader = reader;
  }

  /** Checks until the reader's signal aborts. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#reader;
    this.#startedAt = this.#roundAt = this.#pingAt = this.#clock.now();
    while (!signal.aborted) {
      await delay(this.#clock, this.#waitMs(), signal);
      if (!signal.aborted) await Promise.all(this.#round());
    }
  }

  #waitMs(): number {
    const wait = Math.max(this.#roundMs() - elapsed(this.#clock, this.#roundAt), 1);
    for (const place of this.#reader.places()) {
      if (this.#isHasty(place)) return Math.min(wait, HASTE_MS);
    }
    return wait;
  }

  #isHasty({ hastyAt }: Place): boolean {
    return hastyAt !== undefined && elapsed(this.#clock, hastyAt) < HASTY_FOR_MS;
  }

  #roundMs(): number {
    const turns = Math.ceil(this.#reader.topics() / TOPICS_PER_ROUND);
    return Math.min(ROUND_MS * Math.max(turns, 1), this.#options.checkMs);
  }

  #round(): Promise<void>[] {
    const { checkMs } = this.#options;
    const clock = this.#clock;
    const silentMs = this.#roundMs() * NEARLY;
    const full = elapsed(clock, this.#roundAt) >= silentMs;
    const silent: Asked[] = [];
    const unproved: Asked[] = [];
    for (const place of this.#reader.places()) {
      const { at, heardAt, provedAt } = place;
      if (at === undefined) continue;
      if (full && elapsed(clock, provedAt) >= checkMs * NEARLY) unproved.push({ place, at });
      else if (this.#isHasty(place) || (full && elapsed(clock, heardAt) >= silentMs)) {
        silent.push({ place, at });
      }
    }
    const checks = [
      ...this.#ask(silent, MAX_READ_KEYS, askForMore),
      ...this.#ask(unproved, MAX_TIPS_KEYS, askForTips),
    ];
    if (!full) return checks;
    this.#roundAt = clock.now();
    if (elapsed(clock, this.#pingAt) >= checkMs * NEARLY) {
      this.#pingAt = clock.now();
      checks.push(this.#try(() => this.#reader.ping()));
      checks.push(this.#try(() => this.#askForServer()));
    }
    return checks;
  }

  /** Asks whether announcements still go where they are listened for. */
  async #askForServer(): Promise<void> {
    const channel = this.#reader.announcements();
    if (channel === undefined) return;
    const serverId = await this.#commands.run(
      channel,
      async (redis, serverId) => {
        await requirePrimary(redis);
        return serverId;
      },
      { doing: 'a check of announcements', repeatable: true, signal: this.#reader.signal },
    );
    if (this.#isElsewhere(serverId)) this.#failElsewhere();
  }

  /** Whether commands reach another server than the one that is listened to. */
  #isElsewhere(serverId: string | undefined): boolean {
    const liveId = this.#reader.serverId();
    const elsewhere = serverId !== undefined && liveId !== undefined && serverId !== liveId;
    // Not at once again: while a slot is on its way, a topic may be in one place and its channel in another.
    return elsewhere && elapsed(this.#clock, this.#startedAt) >= this.#options.checkMs;
  }

  #failElsewhere(): void {
    this.#reader.fail(
      new BrokerError('UNAVAILABLE', 'a live read failed: its topics are on another server now'),
    );
  }

  #ask(asked: readonly Asked[], most: number, question: Question): Promise<void>[] {
    return apart(asked).flatMap((byKey) =>
      this.#servers
        .together([...byKey.keys()])
        .flatMap((keys) => chunks(keys, most))
        .map((keys) => {
          const group = keys.flatMap((key) => byKey.get(key) ?? []);
          return this.#try(() => this.#askGroup(group, question));
        }),
    );
  }

  async #askGroup(group: readonly Asked[], question: Question): Promise<void> {
    const key = group[0]?.place.key;
    if (key === undefined) return;
    const { signal, ...reader } = this.#reader;
    const { found, serverId } = await this.#commands.run(
      key,
      async (redis, serverId) => ({ found: await question(redis, group), serverId }),
      { doing: 'a check of quiet topics', repeatable: true, signal },
    );
    const now = this.#clock.now();
    if (question === askForTips) for (const { place } of group) place.provedAt = now;
    if (!found.some(isStillThere)) return;
    // What was announced before the answer may still be on its way. After this it has been heard, if it was announced here.
    await reader.ping();
    const silent = found.filter(isStillThere);
    if (silent.length === 0 || signal.aborted) return;
    if (this.#isElsewhere(serverId)) return this.#failElsewhere();
    for (const { place } of silent) {
      place.hastyAt = now;
      place.events.moved();
    }
  }

  async #try(check: () => Promise<unknown>): Promise<void> {
    try {
      await check();
    } catch (cause) {
      const error = toBrokerError(cause, 'a check of a live read');
      // Unreachable, it is asked again; and when the live read itself breaks, that says so.
      if (error.code === 'UNAVAILABLE' || error.code === 'CLOSED') {
        this.#options.observer.logger.debug({ err: error }, 'redis.check');
      } else this.#reader.fail(error);
    }
  }
}

/** Asks whether there is anything after where they were read to: next to nothing for Redis, and blind to what is gone. */
async function askForMore(redis: Redis, asked: readonly Asked[]): Promise<readonly Asked[]> {
  const keys = asked.map(({ place }) => place.key);
  const ids = asked.map(({ at }) => at.id);
  try {
    const reply = await redis.call('XREAD', 'COUNT', 1, 'STREAMS', ...keys, ...ids);
    // Typed unknown by ioredis: RESP2's reply of XREAD, or nothing.
    const streams = (reply ?? []) as readonly (readonly [key: string, entries: unknown])[];
    const found = new Set(streams.map(([key]) => key));
    return asked.filter(({ place }) => found.has(place.key));
  } catch (error) {
    // One key that is no stream spoils it for all.
    if (outcomeOf(error) !== 'refused') throw error;
    return askForTips(redis, asked);
  }
}

async function askForTips(redis: Redis, asked: readonly Asked[]): Promise<readonly Asked[]> {
  const keys = asked.map(({ place }) => place.key);
  const args = asked.flatMap(({ at }) => [at.epoch, at.id]);
  const [reply] = await Promise.all([TIPS.call(redis, keys, args), requirePrimary(redis)]);
  // Typed unknown by ioredis: what the script returns.
  return (reply as number[]).flatMap((index) => asked[index - 1] ?? []);
}

/** Whether nothing was read since. */
function isStillThere({ place, at }: Asked): boolean {
  return place.at === at;
}

/** Sorts into groups that have each key once: several may read one topic, from different places. */
function apart(asked: readonly Asked[]): Map<string, Asked>[] {
  const groups: Map<string, Asked>[] = [];
  for (const one of asked) {
    const { key } = one.place;
    const group = groups.find((keys) => !keys.has(key));
    if (group === undefined) groups.push(new Map([[key, one]]));
    else group.set(key, one);
  }
  return groups;
}

function chunks<T>(list: readonly T[], most: number): T[][] {
  const parts: T[][] = [];
  for (let i = 0; i < list.length; i += most) parts.push(list.slice(i, i + most));
  return parts;
}
