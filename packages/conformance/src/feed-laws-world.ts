import { Feed } from '@brokerfeed/core';
import { freshTopic, type Subject } from './broker-harness.ts';
import { type Args, Connection } from './feed-laws-client.ts';
import type { Expected, Held, Named } from './feed-laws-frames.ts';
import { type BreakableLog, LawClock } from './feed-laws-log.ts';
import { type Address, FeedModel } from './feed-laws-model.ts';

/** What a run does, in order. */
export type Step =
  | { readonly do: 'append'; readonly size: number; readonly through: 0 | 1 }
  | { readonly do: 'trim'; readonly keep: number }
  | { readonly do: 'drop' }
  | {
      readonly do: 'connect';
      readonly client: number;
      readonly through: 0 | 1;
      readonly from: 'latest' | 'earliest';
      readonly onGap: boolean;
      readonly eager: boolean;
      /** Whether frames are pushed to it, and not pulled. */
      readonly pushed: boolean;
      /** Values of a snapshot. */
      readonly parts: number;
      /** Which token the client sends: none, its newest, or one that it got so many frames before. */
      readonly token: 'none' | number;
      readonly wait: boolean;
    }
  | { readonly do: 'disconnect'; readonly client: number }
  | { readonly do: 'read'; readonly client: number; readonly frames: number }
  | { readonly do: 'break'; readonly through: 0 | 1 }
  | { readonly do: 'turns'; readonly count: number }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'catchUp' };

/** How the feeds of a run are set up. */
export interface Setup {
  readonly highWaterMark: number;
  readonly lingerMs: number;
  /** What is done to values, and whether it takes turns: each is another way through the feed. */
  readonly way: 'plain' | 'prepare' | 'filter' | 'map';
  readonly slow: boolean;
  readonly control: boolean;
}

interface Client {
  readonly held: Held[];
  connection: Connection | undefined;
}

const CLIENTS = 3;
const SECRET = 'the secret of all law feeds';

/** One topic, its model, the feeds on it through two instances, and the clients that read them. */
export class FeedWorld {
  readonly #subject: Subject;
  readonly #logs: readonly [BreakableLog, BreakableLog];
  readonly #topic = freshTopic('feed-law');
  readonly #model = new FeedModel();
  readonly #clock = new LawClock();
  readonly #setup: Setup;
  readonly #deadlineMs: number;
  readonly #feeds = new Map<string, Feed<Args>>();
  readonly #tokens = new Map<string, string>();
  readonly #clients: Client[] = Array.from({ length: CLIENTS }, () => ({
    held: [],
    connection: undefined,
  }));
  readonly #running: Promise<void>[] = [];
  #broken: { readonly error: unknown } | undefined;
  #changed: () => void = () => {};

  constructor(
    subject: Subject,
    logs: readonly [BreakableLog, BreakableLog],
    setup: Setup,
    deadlineMs: number,
  ) {
    this.#subject = subject;
    this.#logs = logs;
    this.#setup = setup;
    this.#deadlineMs = deadlineMs;
  }

  /** Does the steps, then checks that all who are left get what is appended last, and that nothing stays behind. */
  async run(steps: readonly Step[]): Promise<void> {
    try {
      for (const step of steps) {
        await this.#step(step);
        this.#check();
      }
      for (const { connection } of this.#clients) connection?.credit(Number.POSITIVE_INFINITY);
      await this.#catchUp();
      // Once more: the first may have come in a snapshot.
      await this.#catchUp();
    } finally {
      for (const { connection } of this.#clients) connection?.close();
      await this.#until(
        () => Promise.all(this.#running),
        () => 'a reader that was closed does not end',
      );
      this.#clock.advance(this.#setup.lingerMs);
    }
    this.#check();
  }

  async #step(step: Step): Promise<void> {
    switch (step.do) {
      case 'append':
        return this.#append(step.size, step.through);
      case 'trim':
        this.#model.trim(step.keep);
        return this.#subject.harness.trim(this.#topic, step.keep);
      case 'drop':
        this.#model.drop();
        return this.#subject.harness.drop(this.#topic);
      case 'connect':
        return this.#connect(step);
      case 'disconnect':
        return this.#client(step.client).connection?.close();
      case 'read':
        return this.#client(step.client).connection?.credit(step.frames);
      case 'break':
        return this.#logs[step.through].breakReads();
      case 'turns':
        for (let turn = 0; turn < step.count; turn += 1) await null;
        return;
      case 'advance':
        return this.#clock.advance(step.ms);
      case 'catchUp':
        return this.#catchUp();
      default:
        return step satisfies never;
    }
  }

  async #append(size: number, through: 0 | 1): Promise<void> {
    const values = this.#model.append(size);
    const commit = this.#model.tip;
    const position = await this.#logs[through].append(this.#topic, values);
    if (position.ordinal !== commit)
      throw new Error(`commit ${commit} was given the ordinal ${position.ordinal}`);
  }

  async #connect(step: Step & { do: 'connect' }): Promise<void> {
    const client = this.#client(step.client);
    client.connection?.close();
    const held = step.token === 'none' ? undefined : client.held.at(-1 - step.token);
    const connection = new Connection(
      this.#model,
      this.#tokens,
      {
        expected: this.#expectedOf(held, step.from),
        eager: step.eager,
        parts: step.parts,
        pushed: step.pushed,
        feed: feedKey(step.through, step.from, step.onGap),
        mayBeInside: held?.mayBeInside ?? false,
        control: this.#setup.control,
      },
      () => this.#changed(),
      (next) => client.held.push(next),
    );
    client.connection = connection;
    const feed = this.#feed(step.through, step.from, step.onGap);
    const running = connection.run(() =>
      feed.open({
        topic: this.#topic,
        lastEventId: held?.token,
        args: { connection },
        signal: connection.signal,
      }),
    );
    this.#running.push(
      running.catch((error) => {
        this.#broken ??= { error };
        this.#changed();
      }),
    );
    if (step.wait)
      await this.#seen(
        () => connection.state !== 'opening',
        () => 'a feed does not open',
      );
  }

  #expectedOf(held: Held | undefined, from: 'latest' | 'earliest'): Expected {
    if (held !== undefined) return held.expected;
    const { incarnation } = this.#model;
    return from === 'latest'
      ? { kind: 'before', incarnation, commit: Number.POSITIVE_INFINITY }
      : {
          kind: 'oldest',
          incarnation,
          commit: this.#model.trimmed(incarnation) + 1,
          until: incarnation,
        };
  }

  #feed(through: 0 | 1, from: 'latest' | 'earliest', onGap: boolean): Feed<Args> {
    const key = feedKey(through, from, onGap);
    let feed = this.#feeds.get(key);
    if (feed === undefined) {
      const { highWaterMark, lingerMs, way, slow, control } = this.#setup;
      const pass = <T>(value: T): T | Promise<T> => (slow ? Promise.resolve(value) : value);
      feed = new Feed<Args>(this.#logs[through], {
        from,
        highWaterMark,
        lingerMs,
        control: control && { idleMs: 1_000 },
        secret: SECRET,
        clock: this.#clock,
        retryDelaysMs: [0, 0, 0, 0, 0],
        decode: (text, { generation, index }): Named => {
          return { ...(JSON.parse(text) as Address), generation, place: index, by: key };
        },
        ...(way === 'prepare' && { prepare: pass }),
        ...(way === 'filter' && { filter: () => pass(true) }),
        ...(way === 'map' && { map: pass }),
        ...(onGap && { onGap: ({ connection, gap }) => connection.snapshot(gap) }),
      });
      this.#feeds.set(key, feed);
    }
    return feed;
  }

  /** Appends a commit and waits until every client that reads all it can has it. */
  async #catchUp(): Promise<void> {
    await this.#append(2, 0);
    await this.#seen(
      () => this.#eager.every((connection) => connection.caughtUp),
      () =>
        `a client never got commit ${this.#model.tip} of incarnation ${this.#model.incarnation}, or was never told that it is live`,
    );
  }

  get #eager(): readonly Connection[] {
    return this.#clients.flatMap(({ connection }) =>
      connection?.eager && (connection.state === 'open' || connection.state === 'opening')
        ? [connection]
        : [],
    );
  }

  #client(index: number): Client {
    const client = this.#clients[index];
    if (client === undefined) throw new RangeError(`there is no client ${index}`);
    return client;
  }

  #check(): void {
    if (this.#broken !== undefined) throw this.#broken.error;
  }

  async #seen(condition: () => boolean, describe: () => string): Promise<void> {
    await this.#until(
      () =>
        new Promise<void>((resolve) => {
          const look = (): void => {
            if (this.#broken !== undefined || condition()) resolve();
          };
          this.#changed = look;
          look();
        }),
      describe,
    );
    this.#changed = () => {};
    this.#check();
  }

  async #until(wait: () => Promise<unknown>, describe: () => string): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(describe())), this.#deadlineMs);
    });
    try {
      await Promise.race([wait(), deadline]);
    } finally {
      clearTimeout(timer);
    }
  }
}

function feedKey(through: 0 | 1, from: 'latest' | 'earliest', onGap: boolean): string {
  return `${through} ${from} ${onGap ? 'onGap' : ''}`;
}
